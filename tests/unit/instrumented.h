/* What functions_process calls of the code compiled with -finstrument-functions. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* Calls the static function helper() so many times. */
void work(int times);
void call_long_name(void);
/* Functions that take 2 ms each, without what they call: outer() and, `depth` times one in the
 * other, descend(). The seconds that all took. */
double time_recursion(int depth);
/* leave() is called and left by longjmp so many times, then once for 5 ms. The seconds of that. */
double time_after_jumps(int jumps);
/* One child calls in_child() so many times, another one ends at once. 0 if both ended well. */
int fork_and_count(int times);
/* spend_and_fork() takes 5 ms and returns in a child, too, which ends then. Its seconds. */
double time_fork(void);
/* From now on SIGALRM calls in_handler(), and how often it did. */
void handle_alarms(void);
int alarms_handled(void);
/* 1,100 functions, each once. */
void call_many(void);
/* In C++: calls of a method, an overloaded function, one in an unnamed namespace, and a function
 * that is left by an exception. */
void call_cxx(void);
/* A function whose name is longer than the value of a tag may be, twice, and so is its symbol. */
void call_cxx_long_name(void);
/* Of a class with a virtual base: two constructors and destructors of the class by itself, and
 * three constructors of the base of another one. */
void call_cxx_constructors(void);
/* shapes::InHandler(), in a signal handler. */
void call_cxx_in_handler(void);

#ifdef __cplusplus
}
#endif
