// What an MPI call sends and receives, from its arguments: docs/interpose.md has the formulas.
//
// A shape is a class with the places of the arguments that it needs and
//   void Prepare<Abi>(Word* a, Word status)   before the call: may pass `status` where the program
//                                             passes MPI_STATUS_IGNORE
//   Bytes Count<Abi>(const Word* a)           after a call that succeeded
// A call that waits for a message from one rank has the places of that rank and its communicator in
// kPeer and kPeerComm; they are -1 in all others.
//
// Collectives are counted by the buffers of the calling rank, as the standard describes them, not
// by what an algorithm sends. On intercommunicators no bytes are counted.
//
// Thread safety: no state.
#pragma once

#include "libclient/mpi/abi.h"

namespace sonde::mpi {

struct Bytes {
  int64_t sent = 0;
  int64_t received = 0;
};

namespace shape {

struct Plain {
  static constexpr bool kSends = false, kReceives = false;
  static constexpr int kPeer = -1, kPeerComm = -1;
  template <class Abi>
  static void Prepare(Word*, Word) {}
};

struct None : Plain {
  template <class Abi>
  static Bytes Count(const Word*) {
    return {};
  }
};

template <class Shape, int kPeerPlace, int kCommPlace>
struct From : Shape {
  static constexpr int kPeer = kPeerPlace, kPeerComm = kCommPlace;
};

template <class Abi>
int64_t Product(const Word* a, int count, int type) {
  const int64_t elements = Abi::Count(a[count]);
  return elements <= 0 ? 0 : elements * Abi::TypeSize(a[type]);
}

// To a rank; a negative one is MPI_PROC_NULL.
template <int kCount, int kType, int kRank>
struct Send : Plain {
  static constexpr bool kSends = true;
  template <class Abi>
  static Bytes Count(const Word* a) {
    return {Abi::Int(a[kRank]) < 0 ? 0 : Product<Abi>(a, kCount, kType), 0};
  }
};

// From a rank, as much as there is room for: the size of the message is known when the request is
// complete, but not to us.
template <int kCount, int kType, int kRank>
struct Posted : Plain {
  static constexpr bool kReceives = true;
  template <class Abi>
  static Bytes Count(const Word* a) {
    return {0, Abi::Int(a[kRank]) == proc_null ? 0 : Product<Abi>(a, kCount, kType)};
  }
};

template <int kCount, int kType>
struct Asked : Plain {
  static constexpr bool kReceives = true;
  template <class Abi>
  static Bytes Count(const Word* a) {
    return {0, Product<Abi>(a, kCount, kType)};
  }
};

template <int kCount, int kType>
struct Given : Plain {
  static constexpr bool kSends = true;
  template <class Abi>
  static Bytes Count(const Word* a) {
    return {Product<Abi>(a, kCount, kType), 0};
  }
};

// As much as the status says.
template <int kType, int kStatus>
struct ByStatus : Plain {
  template <class Abi>
  static void Prepare(Word* a, Word status) {
    if (Abi::StatusIgnored(a[kStatus])) a[kStatus] = status;
  }
  template <class Abi>
  static int64_t Amount(const Word* a) {
    const int64_t elements = Abi::GetCount(a[kStatus], a[kType]);
    return elements == 0 ? 0 : elements * Abi::TypeSize(a[kType]);
  }
};

template <int kCount, int kType, int kStatus>
struct Arrived : ByStatus<kType, kStatus> {
  static constexpr bool kReceives = true;
  template <class Abi>
  static Bytes Count(const Word* a) {
    return {0, ByStatus<kType, kStatus>::template Amount<Abi>(a)};
  }
};

using Receive = From<Arrived<1, 2, 6>, 3, 5>;
using Probe = From<None, 0, 2>;

template <int kCount, int kType, int kStatus>
struct Written : ByStatus<kType, kStatus> {
  static constexpr bool kSends = true;
  template <class Abi>
  static Bytes Count(const Word* a) {
    return {ByStatus<kType, kStatus>::template Amount<Abi>(a), 0};
  }
};

// MPI_Sendrecv and its kin.
struct Exchange : ByStatus<7, 11> {
  static constexpr bool kSends = true, kReceives = true;
  static constexpr int kPeer = 8, kPeerComm = 10;
  template <class Abi>
  static Bytes Count(const Word* a) {
    return {Send<1, 2, 3>::Count<Abi>(a).sent, Amount<Abi>(a)};
  }
};
struct ExchangeInPlace : ByStatus<2, 8> {
  static constexpr bool kSends = true, kReceives = true;
  static constexpr int kPeer = 5, kPeerComm = 7;
  template <class Abi>
  static Bytes Count(const Word* a) {
    return {Send<1, 2, 3>::Count<Abi>(a).sent, Amount<Abi>(a)};
  }
};
struct ExchangePosted : Plain {
  static constexpr bool kSends = true, kReceives = true;
  template <class Abi>
  static Bytes Count(const Word* a) {
    return {Send<1, 2, 3>::Count<Abi>(a).sent, Posted<6, 7, 8>::Count<Abi>(a).received};
  }
};
struct ExchangePostedInPlace : Plain {
  static constexpr bool kSends = true, kReceives = true;
  template <class Abi>
  static Bytes Count(const Word* a) {
    return {Send<1, 2, 3>::Count<Abi>(a).sent, Posted<1, 2, 5>::Count<Abi>(a).received};
  }
};

// MPI_Get_accumulate: the bytes that go there and those that come back.
struct GetAccumulate : Plain {
  static constexpr bool kSends = true, kReceives = true;
  template <class Abi>
  static Bytes Count(const Word* a) {
    return {Send<1, 2, 6>::Count<Abi>(a).sent, Posted<4, 5, 6>::Count<Abi>(a).received};
  }
};
template <int kType, int kRank>
struct OneElement : Plain {
  static constexpr bool kSends = true, kReceives = true;
  template <class Abi>
  static Bytes Count(const Word* a) {
    const int64_t size = Abi::Int(a[kRank]) < 0 ? 0 : Abi::TypeSize(a[kType]);
    return {size, size};
  }
};

// --- Collectives

struct Collective : Plain {
  static constexpr bool kSends = true, kReceives = true;
};

template <class Abi>
int64_t Sum(Word counts, int ranks) {
  int64_t sum = 0;
  for (int i = 0; i < ranks; ++i) sum += Abi::CountAt(counts, i);
  return sum;
}

template <int kCount, int kType, int kRoot, int kComm>
struct Broadcast : Collective {
  template <class Abi>
  static Bytes Count(const Word* a) {
    if (Abi::BetweenGroups(a[kComm])) return {};
    const int64_t size = Product<Abi>(a, kCount, kType);
    return Abi::CommRank(a[kComm]) == Abi::Int(a[kRoot]) ? Bytes{size, 0} : Bytes{0, size};
  }
};

template <int kFrom, int kTo, int kCount, int kType, int kRoot, int kComm>
struct Reduction : Collective {
  template <class Abi>
  static Bytes Count(const Word* a) {
    if (Abi::BetweenGroups(a[kComm])) return {};
    const int64_t size = Product<Abi>(a, kCount, kType);
    return {size, Abi::CommRank(a[kComm]) == Abi::Int(a[kRoot]) ? size : 0};
  }
};

template <int kCount, int kType, int kComm>
struct AllReduction : Collective {
  template <class Abi>
  static Bytes Count(const Word* a) {
    const int64_t size = Product<Abi>(a, kCount, kType);
    return {size, size};
  }
};

template <int kRoot, int kComm>
struct GatherTo : Collective {
  template <class Abi>
  static Bytes Count(const Word* a) {
    if (Abi::BetweenGroups(a[kComm])) return {};
    if (Abi::CommRank(a[kComm]) != Abi::Int(a[kRoot])) return {Product<Abi>(a, 1, 2), 0};
    const int64_t block = Product<Abi>(a, 4, 5);
    return {Abi::InPlace(a[0]) ? block : Product<Abi>(a, 1, 2), block * Abi::CommSize(a[kComm])};
  }
};

struct GathervTo : Collective {
  template <class Abi>
  static Bytes Count(const Word* a) {
    if (Abi::BetweenGroups(a[8])) return {};
    const int rank = Abi::CommRank(a[8]);
    if (rank != Abi::Int(a[7])) return {Product<Abi>(a, 1, 2), 0};
    const int64_t size = Abi::TypeSize(a[6]);
    return {Abi::InPlace(a[0]) ? size * Abi::CountAt(a[4], rank) : Product<Abi>(a, 1, 2),
            size * Sum<Abi>(a[4], Abi::CommSize(a[8]))};
  }
};

template <int kRoot, int kComm>
struct ScatterFrom : Collective {
  template <class Abi>
  static Bytes Count(const Word* a) {
    if (Abi::BetweenGroups(a[kComm])) return {};
    if (Abi::CommRank(a[kComm]) != Abi::Int(a[kRoot])) return {0, Product<Abi>(a, 4, 5)};
    const int64_t block = Product<Abi>(a, 1, 2);
    return {block * Abi::CommSize(a[kComm]), Abi::InPlace(a[3]) ? block : Product<Abi>(a, 4, 5)};
  }
};

struct ScattervFrom : Collective {
  template <class Abi>
  static Bytes Count(const Word* a) {
    if (Abi::BetweenGroups(a[8])) return {};
    const int rank = Abi::CommRank(a[8]);
    if (rank != Abi::Int(a[7])) return {0, Product<Abi>(a, 5, 6)};
    const int64_t size = Abi::TypeSize(a[3]);
    return {size * Sum<Abi>(a[1], Abi::CommSize(a[8])),
            Abi::InPlace(a[4]) ? size * Abi::CountAt(a[1], rank) : Product<Abi>(a, 5, 6)};
  }
};

struct AllGather : Collective {
  template <class Abi>
  static Bytes Count(const Word* a) {
    if (Abi::BetweenGroups(a[6])) return {};
    const int64_t block = Product<Abi>(a, 4, 5);
    return {Abi::InPlace(a[0]) ? block : Product<Abi>(a, 1, 2), block * Abi::CommSize(a[6])};
  }
};

struct AllGatherv : Collective {
  template <class Abi>
  static Bytes Count(const Word* a) {
    if (Abi::BetweenGroups(a[7])) return {};
    const int64_t size = Abi::TypeSize(a[6]);
    return {
        Abi::InPlace(a[0]) ? size * Abi::CountAt(a[4], Abi::CommRank(a[7])) : Product<Abi>(a, 1, 2),
        size * Sum<Abi>(a[4], Abi::CommSize(a[7]))};
  }
};

struct AllToAll : Collective {
  template <class Abi>
  static Bytes Count(const Word* a) {
    if (Abi::BetweenGroups(a[6])) return {};
    const int64_t ranks = Abi::CommSize(a[6]);
    const int64_t received = ranks * Product<Abi>(a, 4, 5);
    return {Abi::InPlace(a[0]) ? received : ranks * Product<Abi>(a, 1, 2), received};
  }
};

struct AllToAllv : Collective {
  template <class Abi>
  static Bytes Count(const Word* a) {
    if (Abi::BetweenGroups(a[8])) return {};
    const int ranks = Abi::CommSize(a[8]);
    const int64_t received = Sum<Abi>(a[5], ranks) * Abi::TypeSize(a[7]);
    return {Abi::InPlace(a[0]) ? received : Sum<Abi>(a[1], ranks) * Abi::TypeSize(a[3]), received};
  }
};

struct ReduceScatter : Collective {
  template <class Abi>
  static Bytes Count(const Word* a) {
    if (Abi::BetweenGroups(a[5])) return {};
    const int64_t size = Abi::TypeSize(a[3]);
    return {size * Sum<Abi>(a[2], Abi::CommSize(a[5])),
            size * Abi::CountAt(a[2], Abi::CommRank(a[5]))};
  }
};

struct ReduceScatterBlock : Collective {
  template <class Abi>
  static Bytes Count(const Word* a) {
    if (Abi::BetweenGroups(a[5])) return {};
    const int64_t block = Product<Abi>(a, 2, 3);
    return {block * Abi::CommSize(a[5]), block};
  }
};

}  // namespace shape
}  // namespace sonde::mpi
