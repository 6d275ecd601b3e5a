/* Functions as a large program has them in its table of symbols: as many as SYMBOLS. */
#ifndef SYMBOLS
#define SYMBOLS 500000
#endif
#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

__asm__(
    ".pushsection named_functions, \"ax\", %progbits\n"
    ".macro name_a_function\n"
    "  .type one_of_large_program_\\@, STT_FUNC\n"
    "one_of_large_program_\\@:\n"
    "  .byte 0\n"
    ".endm\n"
    ".rept " TEXT(SYMBOLS) "\n"
    "  name_a_function\n"
    ".endr\n"
    ".popsection\n");

/* So that the linker keeps the section. */
__attribute__((constructor, section("named_functions"))) static void keep(void) {
  static volatile int kept;
  kept = 1;
}
