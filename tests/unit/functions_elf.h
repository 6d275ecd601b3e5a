// A small ELF file with symbols, made for tests of the reader.
#pragma once

#include <elf.h>

#include <cstring>
#include <string>
#include <vector>

namespace sonde::functions {

struct TestSymbol {
  const char* name;
  uint64_t address;
  unsigned binding = STB_GLOBAL;
  unsigned type = STT_FUNC;
  uint16_t section = 1;
};

// Code of the file's bytes [0x1000, 0x2000) at `base` + 0x1000. Without `symbols`, or `dynamic`
// ones, the table is not there.
inline std::string TestElf(const std::vector<TestSymbol>& symbols,
                           const std::vector<TestSymbol>& dynamic = {}, uint64_t base = 0) {
  std::string out(0x2000, '\0');
  std::vector<Elf64_Shdr> sections(1);
  const auto table = [&](const std::vector<TestSymbol>& all, uint32_t type) {
    if (all.empty()) return;
    std::string text(1, '\0');
    std::string entries(sizeof(Elf64_Sym), '\0');
    for (const TestSymbol& symbol : all) {
      Elf64_Sym entry{};
      entry.st_name = static_cast<Elf64_Word>(text.size());
      entry.st_info = static_cast<unsigned char>(ELF64_ST_INFO(symbol.binding, symbol.type));
      entry.st_shndx = symbol.section;
      entry.st_value = symbol.address;
      text.append(symbol.name).push_back('\0');
      entries.append(reinterpret_cast<const char*>(&entry), sizeof(entry));
    }
    Elf64_Shdr section{};
    section.sh_type = type;
    section.sh_offset = out.size();
    section.sh_size = entries.size();
    section.sh_entsize = sizeof(Elf64_Sym);
    section.sh_link = static_cast<Elf64_Word>(sections.size() + 1);
    sections.push_back(section);
    out += entries;
    section = {};
    section.sh_type = SHT_STRTAB;
    section.sh_offset = out.size();
    section.sh_size = text.size();
    sections.push_back(section);
    out += text;
  };
  table(symbols, SHT_SYMTAB);
  table(dynamic, SHT_DYNSYM);
  Elf64_Phdr segments[2]{};
  segments[0].p_type = PT_LOAD;
  segments[0].p_flags = PF_R;
  segments[0].p_filesz = 0x1000;
  segments[0].p_vaddr = base;
  segments[1].p_type = PT_LOAD;
  segments[1].p_flags = PF_R | PF_X;
  segments[1].p_offset = segments[1].p_filesz = 0x1000;
  segments[1].p_vaddr = base + 0x1000;
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_phoff = sizeof(header);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 2;
  header.e_shoff = out.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<Elf64_Half>(sections.size());
  std::memcpy(out.data(), &header, sizeof(header));
  std::memcpy(out.data() + sizeof(header), segments, sizeof(segments));
  out.append(reinterpret_cast<const char*>(sections.data()), sections.size() * sizeof(Elf64_Shdr));
  return out;
}

}  // namespace sonde::functions
