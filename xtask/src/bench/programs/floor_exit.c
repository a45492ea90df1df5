/* The floor of a hook's round trip: a program that does nothing, linked statically. */
int main(void) { return 0; }
