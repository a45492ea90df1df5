//! A deserializer that has no input: it gives each type something it accepts and notes what it was asked for.

use std::{cell::RefCell, collections::BTreeMap, fmt};

use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess,
    Visitor, value::StrDeserializer,
};
use serde_json::{Map, Value, json};
use watchkeeper_core::AgentKind;

/// What every text field is given: it reads as a time where a time is wanted.
const TEXT: &str = "1970-01-01T00:00:00.000Z";
/// The name by which [`crate::Time`] makes itself known.
const TIME: &str = "Time";
/// The name by which [`AgentKind`] makes itself known; a file of the user's may declare more than are built in.
const AGENT: &str = "AgentKind";

/// The JSON Schema of a type.
pub(super) fn of<T: DeserializeOwned>() -> Value {
    let mut plan = Plan::default();
    let traced = |plan: &Plan| {
        let note = Note::default();
        T::deserialize(Tracer { note: &note, plan }).map(|_| note.0.into_inner())
    };
    // First look which structs there are, then leave out each field once: who misses it, requires it.
    let first = traced(&plan);
    for (name, fields) in plan.seen.take() {
        for field in fields {
            plan.omit = Some((name, field));
            if traced(&plan).is_err() {
                plan.required.entry(name).or_default().push(field);
            }
        }
    }
    plan.omit = None;
    // A type that cannot be traced accepts anything as far as the schema says; the tests see to it that none is.
    first.and_then(|_| traced(&plan)).unwrap_or_else(|Untraceable(why)| json!({"description": why}))
}

/// What one trace is to do. Structs are told apart by their names, which are unique in this crate.
#[derive(Default)]
struct Plan {
    omit: Option<(&'static str, &'static str)>,
    seen: RefCell<BTreeMap<&'static str, &'static [&'static str]>>,
    required: BTreeMap<&'static str, Vec<&'static str>>,
}

/// Where a tracer writes the schema of what it stands for.
#[derive(Default)]
struct Note(RefCell<Value>);

impl Note {
    fn put(&self, value: Value) {
        *self.0.borrow_mut() = value;
    }
}

#[derive(Clone, Copy)]
struct Tracer<'a> {
    note: &'a Note,
    plan: &'a Plan,
}

#[derive(Debug)]
struct Untraceable(String);

impl fmt::Display for Untraceable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Untraceable {}

impl de::Error for Untraceable {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

macro_rules! integers {
    ($($method:ident $visit:ident $schema:expr;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Untraceable> {
            self.note.put($schema);
            visitor.$visit(0)
        })*
    };
}

impl<'de> Deserializer<'de> for Tracer<'_> {
    type Error = Untraceable;

    integers! {
        deserialize_u8 visit_u8 json!({"type": "integer", "minimum": 0});
        deserialize_u16 visit_u16 json!({"type": "integer", "minimum": 0});
        deserialize_u32 visit_u32 json!({"type": "integer", "minimum": 0});
        deserialize_u64 visit_u64 json!({"type": "integer", "minimum": 0});
        deserialize_i8 visit_i8 json!({"type": "integer"});
        deserialize_i16 visit_i16 json!({"type": "integer"});
        deserialize_i32 visit_i32 json!({"type": "integer"});
        deserialize_i64 visit_i64 json!({"type": "integer"});
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Untraceable> {
        self.note.put(json!({"type": "boolean"}));
        visitor.visit_bool(false)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Untraceable> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Untraceable> {
        self.note.put(json!({"type": "number"}));
        visitor.visit_f64(0.0)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Untraceable> {
        self.note.put(json!({"type": "string"}));
        visitor.visit_char('a')
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Untraceable> {
        self.note.put(json!({"type": "string"}));
        visitor.visit_str(TEXT)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Untraceable> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Untraceable> {
        self.deserialize_str(visitor)
    }

    /// Any JSON value.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Untraceable> {
        self.note.put(json!({}));
        visitor.visit_unit()
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Untraceable> {
        self.deserialize_any(visitor)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Untraceable> {
        self.note.put(json!({"type": "null"}));
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Untraceable> {
        let value = visitor.visit_some(self)?;
        let mut schema = self.note.0.borrow_mut();
        if let Some(kind) = schema.get("type").cloned() {
            schema["type"] = json!([kind, "null"]);
        }
        Ok(value)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Untraceable> {
        if name == AGENT {
            let names: Vec<&str> = AgentKind::ALL.iter().map(AgentKind::name).collect();
            self.note.put(json!({"type": "string", "pattern": "^[a-z][a-z0-9-]{1,23}$", "examples": names}));
            return visitor.visit_newtype_struct(StrDeserializer::new(AgentKind::Claude.name()));
        }
        let value = visitor.visit_newtype_struct(self)?;
        if name == TIME {
            self.note.put(json!({"type": "string", "format": "date-time"}));
        }
        Ok(value)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Untraceable> {
        let item = Note::default();
        let value = visitor.visit_seq(Once { note: &item, plan: self.plan, given: false })?;
        self.note.put(json!({"type": "array", "items": item.0.into_inner()}));
        Ok(value)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Untraceable> {
        let item = Note::default();
        let value = visitor.visit_map(Once { note: &item, plan: self.plan, given: false })?;
        self.note.put(json!({"type": "object", "additionalProperties": item.0.into_inner()}));
        Ok(value)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Untraceable> {
        self.plan.seen.borrow_mut().insert(name, fields);
        let properties = RefCell::new(Map::new());
        let omit = self.plan.omit.and_then(|(of, field)| (of == name).then_some(field));
        let given = fields.iter().copied().filter(|field| Some(*field) != omit).collect();
        let value = visitor.visit_map(Fields { given, at: 0, properties: &properties, plan: self.plan })?;
        let mut schema = json!({"type": "object", "properties": properties.into_inner()});
        if let Some(required) = self.plan.required.get(name) {
            schema["required"] = json!(required);
        }
        self.note.put(schema);
        Ok(value)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Untraceable> {
        self.note.put(json!({"type": "string", "enum": variants}));
        let first = variants.first().ok_or_else(|| Untraceable(format!("{name} has no variant")))?;
        visitor.visit_enum(Word(first))
    }

    serde::forward_to_deserialize_any! { bytes byte_buf unit_struct tuple tuple_struct }
}

/// A list or map of one element.
struct Once<'a> {
    note: &'a Note,
    plan: &'a Plan,
    given: bool,
}

impl<'de> SeqAccess<'de> for Once<'_> {
    type Error = Untraceable;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Untraceable> {
        if std::mem::replace(&mut self.given, true) {
            return Ok(None);
        }
        seed.deserialize(Tracer { note: self.note, plan: self.plan }).map(Some)
    }
}

impl<'de> MapAccess<'de> for Once<'_> {
    type Error = Untraceable;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Untraceable> {
        if std::mem::replace(&mut self.given, true) {
            return Ok(None);
        }
        seed.deserialize(StrDeserializer::new(TEXT)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Untraceable> {
        seed.deserialize(Tracer { note: self.note, plan: self.plan })
    }
}

/// The given fields of a struct in turn.
struct Fields<'a> {
    given: Vec<&'static str>,
    at: usize,
    properties: &'a RefCell<Map<String, Value>>,
    plan: &'a Plan,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Untraceable;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Untraceable> {
        let Some(field) = self.given.get(self.at) else { return Ok(None) };
        seed.deserialize(StrDeserializer::new(field)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Untraceable> {
        let note = Note::default();
        let value = seed.deserialize(Tracer { note: &note, plan: self.plan })?;
        let name = self.given[self.at];
        self.at += 1;
        self.properties.borrow_mut().insert(name.into(), note.0.into_inner());
        Ok(value)
    }
}

/// A variant without content.
struct Word(&'static str);

impl<'de> EnumAccess<'de> for Word {
    type Error = Untraceable;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Untraceable> {
        seed.deserialize(StrDeserializer::new(self.0)).map(|value| (value, self))
    }
}

impl<'de> VariantAccess<'de> for Word {
    type Error = Untraceable;

    fn unit_variant(self) -> Result<(), Untraceable> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _seed: T) -> Result<T::Value, Untraceable> {
        Err(Untraceable(format!("the variant {} has content", self.0)))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, _visitor: V) -> Result<V::Value, Untraceable> {
        Err(Untraceable(format!("the variant {} has content", self.0)))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Untraceable> {
        Err(Untraceable(format!("the variant {} has content", self.0)))
    }
}
