/* The program's side of docs/program_protocol.md, for C99 and C++ on Linux; quadratic.c shows it:
 * disttf_join(), then disttf_push() in a loop of disttf_next(). When the task has ended or refuses
 * the program, these functions print one sentence and exit. */
#pragma once

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

struct disttf_variable {
  const char* name;
  const char* shape; /* JSON: "[784, 10]" */
  size_t size;       /* how many numbers */
  int no_decay;
  size_t offset; /* set by disttf_join(): where it begins in both memories */
};

struct disttf_message { /* the header of a packet: 64 bytes, little-endian */
  char magic[4];
  uint16_t kind, flags;
  uint32_t body_size, number;
  uint64_t step, slot, seed, count;
  double value;
  uint64_t reserved;
};

struct disttf_run {
  const float* parameters; /* a write is a segmentation fault */
  float* gradient;
  struct disttf_message now; /* COMPUTE: step, slot, seed */
  uint32_t rows[16384];      /* row numbers of the batch */
  size_t row_count;
  int fd;
  void (*write_initial)(struct disttf_run*);           /* to `gradient` */
  void (*evaluate)(struct disttf_run*, char*, size_t); /* writes JSON: {"loss": 0.1}; or NULL */
};

static inline void disttf_fail(const char* sentence, int code) {
  fprintf(stderr, "disttf: %s\n", sentence);
  exit(code);
}

static inline void disttf_send(struct disttf_run* run, int kind, const char* body, uint64_t count,
                               double value) {
  struct disttf_message head = run->now; /* step and slot are those of the question */
  memcpy(head.magic, "DTP1", 4);
  head.kind = (uint16_t)kind;
  head.body_size = (uint32_t)strlen(body);
  head.number = 0;
  head.seed = 0;
  head.count = count;
  head.value = value;
  char packet[sizeof head + 1024];
  memcpy(packet, &head, sizeof head);
  memcpy(packet + sizeof head, body, head.body_size);
  if (send(run->fd, packet, sizeof head + head.body_size, MSG_NOSIGNAL) < 0)
    disttf_fail("the task that this program computes for has ended", 1);
}

/* Receives one packet; its body goes to run->rows. fds: -1, or the two descriptors of WELCOME. */
static inline void disttf_receive(struct disttf_run* run, int fds[2]) {
  long extra[8]; /* aligned as a cmsghdr */
  struct iovec parts[2] = {{&run->now, sizeof run->now}, {run->rows, sizeof run->rows}};
  struct msghdr packet;
  memset(&packet, 0, sizeof packet);
  packet.msg_iov = parts;
  packet.msg_iovlen = 2;
  packet.msg_control = extra;
  packet.msg_controllen = sizeof extra;
  const ssize_t size = recvmsg(run->fd, &packet, 0);
  if (size <= 0) disttf_fail("the task that this program computes for has ended", 1);
  if (size < 64 || memcmp(run->now.magic, "DTP1", 4) || run->now.body_size != (size_t)size - 64)
    disttf_fail("a packet is malformed", 1);
  if (run->now.kind == 71) { /* REFUSED */
    fprintf(stderr, "disttf: %.*s\n", (int)run->now.body_size, (const char*)run->rows);
    exit((int)run->now.number);
  }
  const struct cmsghdr* rights = CMSG_FIRSTHDR(&packet);
  fds[0] = fds[1] = -1;
  if (rights != NULL && rights->cmsg_len == CMSG_LEN(2 * sizeof(int)))
    memcpy(fds, CMSG_DATA(rights), 2 * sizeof(int));
}

/* rows: of the data set; 0: the program chooses its batches itself. Sets the variables' offsets and
 * run->parameters, run->gradient. run: its write_initial and evaluate are set, the rest is 0. */
static inline void disttf_join(struct disttf_run* run, const char* client, uint32_t rows,
                               struct disttf_variable* variables, size_t count) {
  char text[1024], number_of_rows[32] = "";
  int fds[2];
  size_t size = 0;
  if (getenv("DISTTF_PROGRAM_FD") == NULL)
    disttf_fail("start this program with: disttf launch --program -- COMMAND", 2);
  run->fd = atoi(getenv("DISTTF_PROGRAM_FD"));
  fcntl(run->fd, F_SETFD, FD_CLOEXEC);
  if (rows > 0) snprintf(number_of_rows, sizeof number_of_rows, ", \"rows\": %u", rows);
  snprintf(text, sizeof text, "{\"protocol\": 1, \"client\": \"%s\", \"evaluates\": %s%s}", client,
           run->evaluate ? "true" : "false", number_of_rows);
  disttf_send(run, 1, text, 0, 0); /* HELLO */
  for (size_t i = 0; i < count; ++i) {
    variables[i].offset = size;
    size += (variables[i].size + 15) / 16 * 16;
    snprintf(text, sizeof text, "{\"name\": \"%s\", \"shape\": %s, \"decays\": %s}",
             variables[i].name, variables[i].shape, variables[i].no_decay ? "false" : "true");
    disttf_send(run, 2, text, 0, 0); /* VARIABLE */
  }
  disttf_send(run, 3, "", count, 0); /* LAYOUT */
  disttf_receive(run, fds);          /* WELCOME */
  if (run->now.kind != 65 || fds[1] < 0) disttf_fail("WELCOME was expected", 1);
  void* parameters = mmap(NULL, 4 * size, PROT_READ, MAP_SHARED, fds[0], 0);
  void* gradient = mmap(NULL, 4 * size, PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);
  if (parameters == MAP_FAILED || gradient == MAP_FAILED) disttf_fail("cannot map memory", 1);
  run->parameters = (const float*)parameters;
  run->gradient = (float*)gradient;
}

/* Waits for a batch. 0: the run is over, and the parameters are the result. */
static inline int disttf_next(struct disttf_run* run) {
  char text[1024] = "";
  int fds[2];
  for (;;) {
    disttf_receive(run, fds);
    run->row_count = run->now.body_size / 4;
    if (run->now.kind == 67) return 1; /* COMPUTE */
    if (run->now.kind == 70) return 0; /* END */
    if (run->now.kind == 66) {         /* GIVE_INITIAL */
      run->write_initial(run);
      disttf_send(run, 4, "", 0, 0);  /* INITIAL */
    } else if (run->now.kind == 68) { /* EVALUATE */
      if (run->evaluate) run->evaluate(run, text, sizeof text);
      disttf_send(run, 6, text, 0, 0); /* EVALUATION */
    }
  }
}

/* The gradient has been written: the mean over the batch's rows. */
static inline void disttf_push(struct disttf_run* run, double loss) {
  disttf_send(run, 5, "", 0, loss); /* GRADIENT */
}
