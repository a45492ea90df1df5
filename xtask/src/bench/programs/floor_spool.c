/* The floor of a hook without a daemon: write, fdatasync, rename in the directory given, nothing else. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    static char bytes[4096];
    char temporary[4096], last[4096];
    if (argc != 2) return 2;
    memset(bytes, 'x', sizeof bytes);
    snprintf(temporary, sizeof temporary, "%s/floor-%d.new", argv[1], (int)getpid());
    snprintf(last, sizeof last, "%s/floor-%d", argv[1], (int)getpid());
    int file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return 1;
    if (write(file, bytes, PAYLOAD_BYTES) != PAYLOAD_BYTES) return 1;
    if (fdatasync(file) != 0) return 1;
    return rename(temporary, last) == 0 ? 0 : 1;
}
