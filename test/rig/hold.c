/*
 * hold COMMAND [ARG...]: runs the command, says on stdout how it ended, and then holds the namespaces that it was started in until
 * its stdin ends, which is when whoever started it closes that or dies. As process 1 it takes everything of its host along.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  pid_t command = fork();
  if (command < 0) return 1;
  if (command == 0) {
    close(0);
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    _exit(127);
  }
  int status;
  while (waitpid(command, &status, 0) < 0)
    if (errno != EINTR) return 1;
  dprintf(1, "%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));

  /* Orphans are handed to process 1; so ignored, the kernel buries them. */
  signal(SIGCHLD, SIG_IGN);
  char byte;
  for (;;) {
    ssize_t n = read(0, &byte, 1);
    if (n == 0 || (n < 0 && errno != EINTR)) return 0;
  }
}
