/* To be preloaded behind libsonde_functions, so that it begins before it: takes the thread-specific
 * keys for which the C library has room without allocating memory. */
#include <pthread.h>

__attribute__((constructor)) static void construct(void) {
  for (int i = 0; i < 40; ++i) {
    pthread_key_t key;
    pthread_key_create(&key, NULL);
  }
}
