#include "profiles/reading/block_scan.h"

#include <utility>

#include "profiles/disk/leveldb_read.h"
#include "profiles/records/keys.h"
#include "series/block/block.h"
#include "series/store/past.h"

namespace sonde {
namespace {

uint64_t PartOf(uint64_t sequence) { return sequence >> keys::kPartShift; }

bool SameStream(const BlockKey& a, const BlockKey& b) {
  return a.node == b.node && a.group == b.group && PartOf(a.sequence) == PartOf(b.sequence);
}

}  // namespace

BlockScan::BlockScan(leveldb::DB& db, std::string profile, const std::string& from, Nanos first,
                     Nanos last)
    : profile_(std::move(profile)),
      prefix_(keys::Blocks(profile_)),
      first_(first),
      last_(last),
      blocks_(db.NewIterator(CheckedScan())) {
  blocks_->Seek(from);
}

std::string_view BlockScan::bytes() const { return View(blocks_->value()); }

bool BlockScan::Next() {
  if (std::exchange(begun_, true)) blocks_->Next();
  while (Read()) {
    switch (PlaceOf()) {
      case Place::kWithin:
        return true;
      case Place::kBefore:
        PassBefore();
        break;
      case Place::kAfter:
        PassStream();
        break;
      case Place::kApart:
        blocks_->Next();
        break;
    }
  }
  return false;
}

// Keys that name no block are passed.
bool BlockScan::Read() {
  for (; blocks_->Valid() && blocks_->key().starts_with(prefix_); blocks_->Next()) {
    const auto key = keys::ParseBlock(profile_, View(blocks_->key()));
    if (!key) continue;
    key_ = *key;
    return true;
  }
  return false;
}

BlockScan::Place BlockScan::PlaceOf() const {
  const auto info = ReadBlockInfo(bytes());
  if (!info.ok()) return Place::kWithin;
  const bool within = info->last >= first_ && info->first <= last_;
  if (IsPastGroup(key_.group)) return within ? Place::kWithin : Place::kApart;
  if (info->last < first_) return Place::kBefore;
  return info->first > last_ ? Place::kAfter : Place::kWithin;
}

// The block of that sequence, or the next one behind it. False if it is not before the time, or of
// another stream.
bool BlockScan::SeekTo(uint64_t sequence) {
  const BlockKey here = key_;
  BlockKey there = here;
  there.sequence = sequence;
  blocks_->Seek(keys::Block(profile_, there));
  const bool before = Read() && SameStream(key_, here) && PlaceOf() == Place::kBefore;
  if (!before) key_ = here;
  return before;
}

// To the first block of the stream that is not before the time, or to the next stream.
void BlockScan::PassBefore() {
  uint64_t before = key_.sequence;
  uint64_t step = 1;
  while (SeekTo(before + step)) {
    before = key_.sequence;
    step *= 2;
  }
  uint64_t behind = before + step;  // the first from there on is not before
  while (behind - before > 1) {
    const uint64_t middle = before + (behind - before) / 2;
    if (SeekTo(middle)) {
      before = key_.sequence;
    } else {
      behind = middle;
    }
  }
  BlockKey first = key_;
  first.sequence = before + 1;
  blocks_->Seek(keys::Block(profile_, first));
}

void BlockScan::PassStream() {
  BlockKey next = key_;
  next.sequence = (PartOf(key_.sequence) + 1) << keys::kPartShift;
  blocks_->Seek(keys::Block(profile_, next));
}

}  // namespace sonde
