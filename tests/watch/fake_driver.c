/* Stands for libcuda's questions about kernels, as an H200's driver answers them: of a CUkernel, 2, they give 400. */
#include <stddef.h>

int cuFuncGetParamInfo(void *function, size_t index, size_t *offset, size_t *size) {
  if (function != (void *)1) return 400;
  if (index > 1) return 1;
  *offset = index ? 64 : 0;
  *size = index ? 128 : 4;
  return 0;
}
int cuFuncGetAttribute(int *value, int attribute, void *function) {
  *value = 512;
  return attribute != 1 ? 1 : function == (void *)1 ? 0 : 400;
}
int cuKernelGetFunction(void **function, void *kernel) {
  *function = (void *)1;
  return kernel == (void *)2 ? 0 : 400;
}
