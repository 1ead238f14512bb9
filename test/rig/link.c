/*
 * link PID NAME PID NAME DELAY JITTER LOSS RATE: an Ethernet between the network namespaces of two processes, as bad as asked for.
 *
 *   DELAY   milliseconds one way, JITTER up to so many more; frames are never reordered
 *   LOSS    of a million frames, how many are lost
 *   RATE    kbit/s each way, 0 = as fast as it goes; a queue holds half a second of it, as a router's does
 *
 * There is one TAP device in each namespace. Says "ready" when both are there. Reads commands of one byte from stdin and writes each back
 * when it is in force: "1" and frames vanish (nothing tells the two ends, as when a cable is cut), "0" and they no longer do. The end of
 * stdin ends it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { frame_max = 2048, frames_max = 4096, batch = 64 };

/* Nanoseconds of the monotonic clock. */
typedef uint64_t instant;

struct frame {
  instant due;
  size_t length;
  unsigned char bytes[frame_max];
};

/* Frames on their way in one direction. */
struct way {
  int from, to;
  struct frame *ring;
  size_t first, count;
  instant free_at; /* when the line has sent what is in the queue */
  instant last;    /* when the last frame is due: none overtakes it */
};

static instant delay, jitter;
static long loss;
static double rate;
static bool hole;

static void die(const char *what) {
  perror(what);
  exit(1);
}

static instant now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (instant)t.tv_sec * 1000000000u + (instant)t.tv_nsec;
}

static int tap(const char *pid, const char *name) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/ns/net", pid);
  int ns = open(path, O_RDONLY | O_CLOEXEC);
  if (ns < 0 || setns(ns, CLONE_NEWNET) < 0) die(path);
  close(ns);
  int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) die("/dev/net/tun");
  struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
  snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
  if (ioctl(fd, TUNSETIFF, &request) < 0) die("TUNSETIFF");
  return fd;
}

/* Takes what has arrived at one end. */
static void take(struct way *w) {
  for (int i = 0; i < batch; i++) {
    unsigned char bytes[frame_max];
    ssize_t length = read(w->from, bytes, sizeof bytes);
    if (length <= 0) return;
    instant t = now();
    bool full = w->count == frames_max || (rate > 0 && w->free_at > t + 500000000u);
    if (hole || full || (loss > 0 && random() % 1000000 < loss)) continue;
    instant sent = w->free_at > t ? w->free_at : t;
    if (rate > 0) sent += (instant)((double)length * 8e6 / rate);
    w->free_at = sent;
    instant due = sent + delay + (jitter > 0 ? (instant)random() % jitter : 0);
    if (due < w->last) due = w->last;
    w->last = due;
    struct frame *f = &w->ring[(w->first + w->count++) % frames_max];
    f->due = due;
    f->length = (size_t)length;
    memcpy(f->bytes, bytes, f->length);
  }
}

/* Hands over what is due. Returns when there will be more to do. */
static instant deliver(struct way *w, instant t, instant next) {
  while (w->count > 0) {
    struct frame *f = &w->ring[w->first];
    if (f->due > t) return f->due < next ? f->due : next;
    if (!hole && write(w->to, f->bytes, f->length) < 0 && errno == EAGAIN) return t + 200000;
    w->first = (w->first + 1) % frames_max;
    w->count--;
  }
  return next;
}

/* False at the end of stdin. */
static bool obey(void) {
  char command;
  ssize_t n = read(0, &command, 1);
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  if (n == 0) return false;
  hole = command == '1';
  return write(1, &command, 1) == 1;
}

int main(int argc, char **argv) {
  if (argc != 9) return 2;
  delay = (instant)(atof(argv[5]) * 1e6);
  jitter = (instant)(atof(argv[6]) * 1e6);
  loss = atol(argv[7]);
  rate = atof(argv[8]);
  int a = tap(argv[1], argv[2]), b = tap(argv[3], argv[4]);
  struct way ways[2] = {{.from = a, .to = b}, {.from = b, .to = a}};
  for (int i = 0; i < 2; i++) {
    ways[i].ring = calloc(frames_max, sizeof(struct frame));
    if (!ways[i].ring) die("calloc");
  }
  puts("ready");
  fflush(stdout);
  for (;;) {
    instant t = now(), next = t + 1000000000u;
    for (int i = 0; i < 2; i++) next = deliver(&ways[i], t, next);
    t = now();
    instant rest = next > t ? next - t : 0;
    struct timespec limit = {(time_t)(rest / 1000000000u), (long)(rest % 1000000000u)};
    struct pollfd ready[] = {{0, POLLIN, 0}, {a, POLLIN, 0}, {b, POLLIN, 0}};
    if (ppoll(ready, 3, &limit, NULL) < 0 && errno != EINTR) die("ppoll");
    if (ready[0].revents && !obey()) return 0;
    for (int i = 0; i < 2; i++) take(&ways[i]);
  }
}
