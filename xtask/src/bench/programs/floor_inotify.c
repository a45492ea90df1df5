/* The floor of noticing an append: one line on standard output for every read of notices about the file given. */
#include <sys/inotify.h>
#include <unistd.h>

int main(int argc, char **argv) {
    static char notices[4096];
    if (argc != 2) return 2;
    int watch = inotify_init1(IN_CLOEXEC);
    if (watch < 0 || inotify_add_watch(watch, argv[1], IN_MODIFY) < 0) return 1;
    do {
        if (write(1, "\n", 1) != 1) return 1;
    } while (read(watch, notices, sizeof notices) > 0);
    return 1;
}
