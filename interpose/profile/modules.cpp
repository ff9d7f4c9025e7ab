#include "interpose/profile/modules.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstring>

#include "interpose/profile/system.h"
#include "interpose/profile/text.h"

namespace relock::profile {

namespace {

std::uint32_t epoch;

// The note with the build id in the object's loaded headers. Everything read lies in its first page
// or in a segment that the headers themselves describe.
struct BuildId {
  const unsigned char* bytes = nullptr;
  std::uint32_t length = 0;
};
BuildId find_build_id(const LoadedObject& object) {
  const auto* image = reinterpret_cast<const ElfW(Ehdr)*>(object.start);
  if (std::memcmp(image->e_ident, ELFMAG, SELFMAG) != 0) return {};
  if (image->e_phoff + image->e_phnum * sizeof(ElfW(Phdr)) > 4096) return {};
  const auto* segment = reinterpret_cast<const ElfW(Phdr)*>(object.start + image->e_phoff);
  for (unsigned i = 0; i < image->e_phnum; ++i, ++segment) {
    if (segment->p_type != PT_NOTE) continue;
    std::uint64_t at = object.load_bias + segment->p_vaddr;
    const std::uint64_t end = at + segment->p_memsz;
    if (at < object.start || end > object.end) continue;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(at);
      const std::uint64_t name = at + sizeof *note;
      const std::uint64_t data = name + (note->n_namesz + 3u) / 4 * 4;
      if (data + note->n_descsz > end) break;
      if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
          std::memcmp(reinterpret_cast<const char*>(name), "GNU", 4) == 0) {
        return {reinterpret_cast<const unsigned char*>(data), note->n_descsz};
      }
      at = data + (note->n_descsz + 3u) / 4 * 4;
    }
  }
  return {};
}

// Objects that were seen before are told by this number: what is read of them is enough to tell
// apart two files of one layout that are loaded one after the other at one place.
std::uint64_t fingerprint(const LoadedObject& object) {
  std::uint64_t hash = object.start ^ object.end << 20 ^ object.load_bias;
  const auto take = [&hash](std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  };
  const BuildId id = find_build_id(object);
  // The name too where there is nothing better.
  for (const char* c = object.name; id.length < 8 && *c != '\0'; ++c) {
    take(static_cast<unsigned char>(*c));
  }
  for (std::uint32_t i = 0; i + 8 <= id.length; i += 8) {
    std::uint64_t part;
    std::memcpy(&part, id.bytes + i, sizeof part);
    take(part);
  }
  return hash | 1;
}

std::uint64_t& seen_entry(const LoadedObject& object) {
  return process
      ->seen_modules[(object.start >> 12) * 0x9e3779b97f4a7c15u >> 56 & (kSeenModules - 1)];
}

void fill_path(const Header* header, const LoadedObject& object, ModuleRow& row) {
  Text<sizeof row.path> path;
  if (object.name[0] == '\0') {
    path << header->exe;
  } else if (object.name[0] != '/' && std::strchr(object.name, '/') != nullptr &&
             !read(sandboxed)) {
    char current[sizeof row.path] = "";
    if (system_call(SYS_getcwd, current, sizeof current) > 0) path << current << "/";
    path << object.name;
  } else {
    path << object.name;
  }
  copy_text(row.path, path.c_str());
}

bool same_object(const ModuleRow& left, const ModuleRow& right) {
  return left.start == right.start && left.end == right.end && left.load_bias == right.load_bias &&
         left.build_id_bytes == right.build_id_bytes &&
         std::memcmp(left.build_id, right.build_id, sizeof left.build_id) == 0 &&
         std::strcmp(left.path, right.path) == 0;
}

// Ends the generations of rows whose place `fresh` has taken. Returns whether there were any.
bool end_overlapped(Header* header, ModuleRow* table, std::uint32_t used, const ModuleRow& fresh) {
  bool overlapped = false;
  const std::uint32_t generation = read(header->module_generation);
  for (std::uint32_t i = 0; i < used; ++i) {
    ModuleRow& row = table[i];
    if (read_acquire(row.ready) == 0 || read(row.last_generation) != 0) continue;
    if (row.end <= fresh.start || row.start >= fresh.end) continue;
    write(row.last_generation, generation);
    overlapped = true;
  }
  return overlapped;
}

}  // namespace

bool find_object(std::uint64_t address, LoadedObject* object) {
  dl_find_object found{};
  if (_dl_find_object(reinterpret_cast<void*>(address), &found) != 0) return false;
  object->start = reinterpret_cast<std::uint64_t>(found.dlfo_map_start);
  object->end = reinterpret_cast<std::uint64_t>(found.dlfo_map_end);
  object->load_bias = found.dlfo_link_map->l_addr;
  object->name = found.dlfo_link_map->l_name != nullptr ? found.dlfo_link_map->l_name : "";
  object->unwind_table = found.dlfo_eh_frame;
  return true;
}

namespace {

void add_module(Header* header, const LoadedObject& object) {
  ModuleRow fresh{};
  fresh.start = object.start;
  fresh.end = object.end;
  fresh.load_bias = object.load_bias;
  const BuildId id = find_build_id(object);
  if (id.length <= sizeof fresh.build_id) {
    fresh.build_id_bytes = id.length;
    if (id.length > 0) std::memcpy(fresh.build_id, id.bytes, id.length);
  }
  fill_path(header, object, fresh);

  auto* table = rows<ModuleRow>(header, kSectionModules);
  Section& section = header->sections[kSectionModules];
  std::uint32_t used = read(section.used);
  if (used > kModuleRows) used = kModuleRows;
  for (std::uint32_t i = 0; i < used; ++i) {
    const bool current = read_acquire(table[i].ready) != 0 && read(table[i].last_generation) == 0;
    if (current && same_object(table[i], fresh)) return;
  }
  const bool replaces = end_overlapped(header, table, used, fresh);
  if (replaces) {
    add(header->module_generation, 1u);
    add(epoch, 1u);
  }
  // Two threads may add one object twice; its rows agree, so that does no harm.
  if (used >= kModuleRows) return drop(header, kDropModules);
  const std::uint32_t index = __atomic_fetch_add(&section.used, 1u, __ATOMIC_RELAXED);
  if (index >= kModuleRows) return drop(header, kDropModules);
  fresh.first_generation = replaces ? read(header->module_generation) : 1;
  table[index] = fresh;
  publish(table[index].ready, 1u);  // pairs with the readers above and of the file
}

void note_object(Header* header, const LoadedObject& object) {
  std::uint64_t& seen = seen_entry(object);
  const std::uint64_t own = fingerprint(object);
  if (read(seen) == own) return;
  add_module(header, object);
  write(seen, own);
}

}  // namespace

void note_module(Header* header, std::uint64_t address) {
  LoadedObject object;
  if (address != 0 && find_object(address, &object)) note_object(header, object);
}

bool note_modules(Header* header, const std::uint64_t* frames, std::uint32_t count) {
  const std::uint32_t before = module_epoch();
  LoadedObject object{};
  for (std::uint32_t i = 0; i < count; ++i) {
    // Neighbours mostly lie in one object.
    if (frames[i] >= object.start && frames[i] < object.end) continue;
    if (find_object(frames[i], &object)) {
      note_object(header, object);
    } else {
      object = {};
    }
  }
  return module_epoch() == before;
}

bool modules_are_known(const std::uint64_t* frames, std::uint32_t count) {
  LoadedObject object{};
  for (std::uint32_t i = 0; i < count; ++i) {
    if (frames[i] >= object.start && frames[i] < object.end) continue;
    if (!find_object(frames[i], &object)) {
      object = {};
    } else if (read(seen_entry(object)) != fingerprint(object)) {
      return false;
    }
  }
  return true;
}

void note_all_modules(Header* header) {
  for (const link_map* map = _r_debug.r_map; map != nullptr; map = map->l_next) {
    note_module(header, reinterpret_cast<std::uint64_t>(map->l_ld));
  }
}

std::uint32_t module_epoch() { return read(epoch); }

}  // namespace relock::profile
