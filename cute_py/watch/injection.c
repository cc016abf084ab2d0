/* Loaded by the CUDA driver into a watched program (CUDA_INJECTION64_PATH): writes one JSON line per call that encodes a
 * tensor map, and one per kernel that takes a map for the first time. It changes nothing and never fails the program.
 *
 * Environment: CUTE_PY_WATCH_RECORDS, a folder: each process writes <pid>.jsonl there; CUTE_PY_WATCH_CUPTI, libcupti.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MAP_BYTES = 128, LINE_BYTES = 4096, SEEN = 1 << 14, FRAMES = 24, KERNELS = 1 << 10, PARAMETERS = 64, MAX_RANK = 5 };

/* What is used of cuda.h and of CUPTI's headers, so that a C compiler and libcupti are enough. With CUTE_PY_CHECK_HEADERS
 * defined the compiler compares it with the headers; a test does. */
typedef struct {
  int site; const char *function; const void *arguments; void *result; const char *symbol;
} callback_data;
typedef void (*callback)(void *, int, uint32_t, const void *);
enum { DRIVER_API = 1, ENTER = 0, SHARED_SIZE_BYTES = 1 };
enum {
  ID_LAUNCH = 307, ID_LAUNCH_PTSZ = 442, ID_LAUNCH_EX = 652, ID_LAUNCH_EX_PTSZ = 653, ID_TILED = 697, ID_IM2COL = 698,
  ID_ADDRESS = 699, ID_WIDE = 781
};
#define PARAMETERS_END ((void *)0)
#define PARAMETERS_AT ((void *)1)
#define PARAMETERS_SIZE ((void *)2)
typedef struct { unsigned grid[3], block[3], shared; } launch_config;

/* The arguments as CUPTI passes them, in the layout of the driver's functions. */
typedef struct {
  const uint8_t *map; int type; uint32_t rank; void *address; const uint64_t *dim, *strides; const uint32_t *box, *steps;
  int interleave, swizzle, l2, fill;
} tiled_arguments;
typedef struct {
  const uint8_t *map; int type; uint32_t rank; void *address; const uint64_t *dim, *strides; const int *lower, *upper;
  uint32_t channels, pixels; const uint32_t *steps; int interleave, swizzle, l2, fill;
} im2col_arguments;
typedef struct {
  const uint8_t *map; int type; uint32_t rank; void *address; const uint64_t *dim, *strides; int lower, upper;
  uint32_t channels, pixels; const uint32_t *steps; int interleave, mode, swizzle, l2, fill;
} wide_arguments;
typedef struct { const uint8_t *map; void *address; } address_arguments;
typedef struct {
  void *function; unsigned grid[3], block[3], shared; void *stream; void **parameters, **extra;
} launch_arguments;
typedef struct { const launch_config *config; void *function; void **parameters, **extra; } launch_ex_arguments;

typedef struct { void *function; int count; size_t offset[PARAMETERS], size[PARAMETERS]; int shared; } kernel_row;
typedef struct { char text[LINE_BYTES]; size_t used; } line;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int records = -1;
static pid_t owner = 0;
static uint64_t seen_calls[SEEN], seen_maps[SEEN], seen_launches[SEEN];
static kernel_row kernels[KERNELS];
static __thread uint64_t entered;

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t hash(const void *data, size_t size, uint64_t start) {
  const uint8_t *bytes = data;
  uint64_t h = start ? start : 14695981039346656037u;
  for (size_t i = 0; i < size; i++) h = (h ^ bytes[i]) * 1099511628211u;
  return h ? h : 1;
}

/* 1: the table had the key; 0: it has it now; -1: it is full. */
static int enter(uint64_t *table, uint64_t key) {
  for (size_t i = 0; i < SEEN; i++) {
    uint64_t *slot = &table[(key + i) % SEEN];
    if (*slot == key) return 1;
    if (*slot == 0) { *slot = key; return 0; }
    if (i > 64) break;
  }
  return -1;
}

static int holds(const uint64_t *table, uint64_t key) {
  for (size_t i = 0; i <= 65; i++) {
    uint64_t slot = table[(key + i) % SEEN];
    if (slot == key) return 1;
    if (slot == 0) return 0;
  }
  return 0;
}

static void add(line *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(line *l, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int written = vsnprintf(l->text + l->used, LINE_BYTES - l->used, format, arguments);
  va_end(arguments);
  if (written > 0) l->used += (size_t)written;
  if (l->used >= LINE_BYTES) l->used = LINE_BYTES - 1;
}

static void add_text(line *l, const char *name, const char *text) {
  add(l, ",\"%s\":\"", name);
  for (int n = 0; text && *text && n < 1500; text++, n++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') add(l, "\\%c", c);
    else if (c < 0x20 || c >= 0x7f) add(l, "\\u%04x", c);
    else add(l, "%c", c);
  }
  add(l, "\"");
}

static void add_hex(line *l, const char *name, const uint8_t *bytes) {
  static const char digits[] = "0123456789abcdef";
  char hex[2 * MAP_BYTES + 1];
  for (int i = 0; i < MAP_BYTES; i++) {
    hex[2 * i] = digits[bytes[i] >> 4];
    hex[2 * i + 1] = digits[bytes[i] & 15];
  }
  hex[2 * MAP_BYTES] = 0;
  add(l, ",\"%s\":\"%s\"", name, hex);
}

#define ADD_ARRAY(l, name, values, count, format, type)                                      \
  do {                                                                                       \
    add(l, ",\"%s\":", name);                                                                \
    if ((values) == NULL) { add(l, "null"); break; }                                         \
    add(l, "[");                                                                             \
    for (uint32_t i_ = 0; i_ < (count); i_++) add(l, "%s" format, i_ ? "," : "", (type)(values)[i_]); \
    add(l, "]");                                                                             \
  } while (0)

static void put(line *l) {
  if (l->used + 1 < LINE_BYTES) l->text[l->used++] = '\n';
  else l->text[LINE_BYTES - 1] = '\n';
  if (owner != getpid()) { /* the first line of this process, which may be a fork of a watched one */
    char path[LINE_BYTES];
    const char *folder = getenv("CUTE_PY_WATCH_RECORDS");
    owner = getpid();
    snprintf(path, sizeof path, "%s/%ld.jsonl", folder ? folder : ".", (long)owner);
    records = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  }
  if (records >= 0 && write(records, l->text, l->used) < 0) records = -1;
}

static void begin(line *l, const char *kind) {
  l->used = 0;
  add(l, "{\"kind\":\"%s\",\"at\":%" PRIu64 ",\"thread\":%ld", kind, now(), (long)syscall(SYS_gettid));
}

/* The file of the first caller that is neither the driver, CUPTI, this library, nor what ctypes calls through. */
static const char *caller(void) {
  void *frames[FRAMES];
  Dl_info info, self;
  int count = backtrace(frames, FRAMES);
  if (!dladdr((void *)&lock, &self)) self.dli_fname = "";
  for (int i = 0; i < count; i++) {
    if (!dladdr(frames[i], &info) || !info.dli_fname) continue;
    if (strcmp(info.dli_fname, self.dli_fname) == 0 || strstr(info.dli_fname, "libcuda.so") ||
        strstr(info.dli_fname, "libcupti") || strstr(info.dli_fname, "libffi"))
      continue;
    return info.dli_fname;
  }
  return "";
}

static uint32_t shown(uint32_t rank) { return rank > MAX_RANK ? MAX_RANK : rank; }

static uint64_t hash_array(const void *values, size_t size, uint64_t key) {
  return values ? hash(values, size, key) : key * 31 + 1;
}

static void encoded(uint32_t id, const void *arguments, int result, uint64_t spent) {
  const tiled_arguments *t = arguments;
  const im2col_arguments *c = arguments;
  const wide_arguments *w = arguments;
  const address_arguments *a = arguments;
  const char *call = "cuTensorMapReplaceAddress";
  uint64_t key = hash(&id, sizeof id, 0);
  uint32_t n = id == ID_ADDRESS ? 0 : shown(t->rank), s = n ? n - 1 : 0, p = n > 2 ? n - 2 : 0;
  line l;
  key = hash(&result, sizeof result, key);
  if (n || id != ID_ADDRESS) {
    key = hash(&t->type, sizeof t->type + sizeof t->rank + sizeof t->address, key);
    key = hash_array(t->dim, 8 * n, key);
    key = hash_array(t->strides, 8 * s, key);
  }
  switch (id) {
    case ID_TILED:
      call = "cuTensorMapEncodeTiled";
      key = hash_array(t->box, 4 * n, key);
      key = hash_array(t->steps, 4 * n, key);
      key = hash(&t->interleave, 4 * sizeof(int), key);
      break;
    case ID_IM2COL:
      call = "cuTensorMapEncodeIm2col";
      key = hash_array(c->lower, 4 * p, key);
      key = hash_array(c->upper, 4 * p, key);
      key = hash(&c->channels, 2 * sizeof(uint32_t), key);
      key = hash_array(c->steps, 4 * n, key);
      key = hash(&c->interleave, 4 * sizeof(int), key);
      break;
    case ID_WIDE:
      call = "cuTensorMapEncodeIm2colWide";
      key = hash(&w->lower, 4 * sizeof(int), key);
      key = hash_array(w->steps, 4 * n, key);
      key = hash(&w->interleave, 5 * sizeof(int), key);
      break;
    default:
      key = hash(&a->address, sizeof a->address, key);
      if (a->map && result == 0) key = hash(a->map, MAP_BYTES, key);
  }
  if (result == 0 && t->map) enter(seen_maps, hash(t->map, MAP_BYTES, 0));
  if (enter(seen_calls, key) == 1) {
    begin(&l, "again");
    add(&l, ",\"key\":\"%016" PRIx64 "\",\"ns\":%" PRIu64 "}", key, spent);
    put(&l);
    return;
  }
  begin(&l, "encode");
  add(&l, ",\"key\":\"%016" PRIx64 "\",\"call\":\"%s\",\"result\":%d,\"ns\":%" PRIu64, key, call, result, spent);
  add_text(&l, "module", caller());
  add(&l, ",\"map_at\":%" PRIuPTR, (uintptr_t)t->map);
  if (result == 0 && t->map) add_hex(&l, "map", t->map);
  if (id == ID_ADDRESS) {
    add(&l, ",\"global_address\":%" PRIuPTR "}", (uintptr_t)a->address);
    put(&l);
    return;
  }
  add(&l, ",\"data_type\":%d,\"rank\":%" PRIu32 ",\"global_address\":%" PRIuPTR, t->type, t->rank, (uintptr_t)t->address);
  ADD_ARRAY(&l, "global_dim", t->dim, n, "%" PRIu64, uint64_t);
  ADD_ARRAY(&l, "global_strides", t->strides, s, "%" PRIu64, uint64_t);
  if (id == ID_TILED) {
    ADD_ARRAY(&l, "box_dim", t->box, n, "%" PRIu32, uint32_t);
    ADD_ARRAY(&l, "element_strides", t->steps, n, "%" PRIu32, uint32_t);
    add(&l, ",\"interleave\":%d,\"swizzle\":%d,\"l2_promotion\":%d,\"oob_fill\":%d}", t->interleave, t->swizzle, t->l2, t->fill);
  } else if (id == ID_IM2COL) {
    ADD_ARRAY(&l, "pixel_box_lower_corner", c->lower, p, "%d", int);
    ADD_ARRAY(&l, "pixel_box_upper_corner", c->upper, p, "%d", int);
    add(&l, ",\"channels_per_pixel\":%" PRIu32 ",\"pixels_per_column\":%" PRIu32, c->channels, c->pixels);
    ADD_ARRAY(&l, "element_strides", c->steps, n, "%" PRIu32, uint32_t);
    add(&l, ",\"interleave\":%d,\"swizzle\":%d,\"l2_promotion\":%d,\"oob_fill\":%d}", c->interleave, c->swizzle, c->l2, c->fill);
  } else {
    add(&l, ",\"pixel_box_lower_corner_width\":%d,\"pixel_box_upper_corner_width\":%d", w->lower, w->upper);
    add(&l, ",\"channels_per_pixel\":%" PRIu32 ",\"pixels_per_column\":%" PRIu32, w->channels, w->pixels);
    ADD_ARRAY(&l, "element_strides", w->steps, n, "%" PRIu32, uint32_t);
    add(&l, ",\"interleave\":%d,\"mode\":%d,\"swizzle\":%d,\"l2_promotion\":%d,\"oob_fill\":%d}", w->interleave, w->mode, w->swizzle, w->l2, w->fill);
  }
  put(&l);
}

/* Where a kernel's parameters are; asked once for each kernel. The runtime launches a CUkernel, which has to be turned
 * into the function that it is in this context; the driver's own programs launch a CUfunction. */
static kernel_row *kernel(void *function) {
  typedef int (*info_call)(void *, size_t, size_t *, size_t *);
  typedef int (*attribute_call)(int *, int, void *);
  typedef int (*function_call)(void **, void *);
  static info_call info = NULL;
  static attribute_call attribute = NULL;
  static function_call function_of = NULL;
  static int asked = 0;
  kernel_row *row = &kernels[((uintptr_t)function >> 4) % KERNELS];
  void *known = function;
  if (row->function == function) return row;
  if (!asked) {
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    asked = 1;
    if (driver) {
      *(void **)&info = dlsym(driver, "cuFuncGetParamInfo");
      *(void **)&attribute = dlsym(driver, "cuFuncGetAttribute");
      *(void **)&function_of = dlsym(driver, "cuKernelGetFunction");
    }
  }
  row->function = function;
  row->count = 0;
  row->shared = 0;
  if (attribute && attribute(&row->shared, SHARED_SIZE_BYTES, known) != 0 &&
      (!function_of || function_of(&known, function) != 0 || attribute(&row->shared, SHARED_SIZE_BYTES, known) != 0))
    return row;
  if (info)
    while (row->count < PARAMETERS && info(known, (size_t)row->count, &row->offset[row->count], &row->size[row->count]) == 0)
      row->count++;
  return row;
}

static void found_maps(const char *name, void *function, const kernel_row *row, unsigned shared, const uint8_t *bytes, size_t size, size_t offset, int index) {
  for (size_t at = 0; at + MAP_BYTES <= size; at += 64) {
    uint64_t key = hash(bytes + at, MAP_BYTES, 0);
    size_t place = offset + at;
    line l;
    if (!holds(seen_maps, key)) continue;
    key = hash(&function, sizeof function, hash(&place, sizeof place, hash(&shared, sizeof shared, key)));
    if (enter(seen_launches, key) != 0) continue;
    begin(&l, "launch");
    add_text(&l, "kernel", name ? name : "");
    add(&l, ",\"parameter\":%d,\"offset\":%zu,\"shared_static\":%d,\"shared_dynamic\":%u", index, place, row->shared, shared);
    add_hex(&l, "map", bytes + at);
    add(&l, "}");
    put(&l);
  }
}

static void launched(const char *name, void *function, unsigned shared, void **parameters, void **extra) {
  const kernel_row *row = kernel(function);
  if (parameters)
    for (int i = 0; i < row->count; i++)
      if (row->size[i] >= MAP_BYTES && parameters[i])
        found_maps(name, function, row, shared, parameters[i], row->size[i], row->offset[i], i);
  if (extra) {
    const uint8_t *bytes = NULL;
    size_t size = 0;
    for (void **e = extra; *e != PARAMETERS_END; e += 2) {
      if (*e == PARAMETERS_AT) bytes = e[1];
      else if (*e == PARAMETERS_SIZE) size = *(size_t *)e[1];
    }
    if (bytes) found_maps(name, function, row, shared, bytes, size, 0, -1);
  }
}

static void called(void *data, int domain, uint32_t id, const void *given) {
  const callback_data *call = given;
  int error = errno;
  (void)data;
  if (domain != DRIVER_API || !call->arguments) return;
  if (id == ID_LAUNCH || id == ID_LAUNCH_PTSZ ||
      id == ID_LAUNCH_EX || id == ID_LAUNCH_EX_PTSZ) {
    if (call->site != ENTER) return;
    pthread_mutex_lock(&lock);
    if (id == ID_LAUNCH || id == ID_LAUNCH_PTSZ) {
      const launch_arguments *l = call->arguments;
      launched(call->symbol, l->function, l->shared, l->parameters, l->extra);
    } else {
      const launch_ex_arguments *l = call->arguments;
      launched(call->symbol, l->function, l->config ? l->config->shared : 0, l->parameters, l->extra);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return;
  }
  if (call->site == ENTER) { entered = now(); return; }
  uint64_t spent = now() - entered;
  pthread_mutex_lock(&lock);
  encoded(id, call->arguments, call->result ? *(const int *)call->result : 0, spent);
  pthread_mutex_unlock(&lock);
  errno = error;
}

/* Another thread may have held the lock when the program forked. */
static void forked(void) { pthread_mutex_init(&lock, NULL); }

static void refused(const char *what, int code, const char *text) {
  line l;
  begin(&l, "refused");
  add_text(&l, "what", what);
  add(&l, ",\"code\":%d", code);
  add_text(&l, "text", text ? text : "");
  add(&l, "}");
  put(&l);
}

/* The driver calls this once in each process that initialises CUDA. */
int InitializeInjection(void);
__attribute__((visibility("default"))) int InitializeInjection(void) {
  static const uint32_t watched[] = {
      ID_TILED, ID_IM2COL,
      ID_ADDRESS, ID_WIDE,
      ID_LAUNCH, ID_LAUNCH_PTSZ,
      ID_LAUNCH_EX, ID_LAUNCH_EX_PTSZ};
  int (*subscribe)(void **, callback, void *) = NULL;
  int (*enable)(uint32_t, void *, int, uint32_t) = NULL;
  int (*explain)(int, const char **) = NULL;
  void *subscriber;
  const char *path = getenv("CUTE_PY_WATCH_CUPTI"), *text = NULL;
  void *cupti = dlopen(path ? path : "libcupti.so", RTLD_LAZY | RTLD_GLOBAL);
  line l;
  if (!cupti) { refused("libcupti can't be loaded", 0, dlerror()); return 1; }
  *(void **)&subscribe = dlsym(cupti, "cuptiSubscribe");
  *(void **)&enable = dlsym(cupti, "cuptiEnableCallback");
  *(void **)&explain = dlsym(cupti, "cuptiGetResultString");
  if (!subscribe || !enable) { refused("libcupti has no callbacks", 0, path); return 1; }
  int status = subscribe(&subscriber, called, NULL);
  if (status != 0) {
    if (explain) explain(status, &text);
    refused("cuptiSubscribe", status, text);
    return 1;
  }
  for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) {
    status = enable(1, subscriber, DRIVER_API, watched[i]);
    if (status != 0 && watched[i] != ID_WIDE) {
      if (explain) explain(status, &text);
      refused("cuptiEnableCallback", status, text);
    }
  }
  pthread_atfork(NULL, NULL, forked);
  begin(&l, "start");
  add(&l, ",\"pid\":%ld}", (long)getpid());
  put(&l);
  return 1;
}

#ifdef CUTE_PY_CHECK_HEADERS
#include <cuda.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#define SAME(a, b) _Static_assert((long)(a) == (long)(b), #a)
SAME(ID_LAUNCH, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
SAME(ID_LAUNCH_PTSZ, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz);
SAME(ID_LAUNCH_EX, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx);
SAME(ID_LAUNCH_EX_PTSZ, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz);
SAME(ID_TILED, CUPTI_DRIVER_TRACE_CBID_cuTensorMapEncodeTiled);
SAME(ID_IM2COL, CUPTI_DRIVER_TRACE_CBID_cuTensorMapEncodeIm2col);
SAME(ID_ADDRESS, CUPTI_DRIVER_TRACE_CBID_cuTensorMapReplaceAddress);
SAME(ID_WIDE, CUPTI_DRIVER_TRACE_CBID_cuTensorMapEncodeIm2colWide);
SAME(DRIVER_API, CUPTI_CB_DOMAIN_DRIVER_API);
SAME(ENTER, CUPTI_API_ENTER);
SAME(SHARED_SIZE_BYTES, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME(MAP_BYTES, sizeof(CUtensorMap));
SAME(offsetof(callback_data, site), offsetof(CUpti_CallbackData, callbackSite));
SAME(offsetof(callback_data, arguments), offsetof(CUpti_CallbackData, functionParams));
SAME(offsetof(callback_data, result), offsetof(CUpti_CallbackData, functionReturnValue));
SAME(offsetof(callback_data, symbol), offsetof(CUpti_CallbackData, symbolName));
SAME(offsetof(launch_config, shared), offsetof(CUlaunchConfig, sharedMemBytes));
#endif
