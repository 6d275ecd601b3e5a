#include "libclient/mpi/peers.h"

#include <stdio.h>

namespace sonde::mpi {
namespace {

using interpose::AddSeconds;
using interpose::Visit;

struct Peer {
  int rank = -1;
  double seconds = 0;
  sonde_metric_t* told = nullptr;
};
constexpr size_t kRemembered = 16;
constexpr int kMostTold = 4;
constinit Peer peers[kRemembered];
constinit int told = 0;

// The rank in MPI_COMM_WORLD; negative: not known.
int InWorld(int source, Word comm) {
  if (comm == 0 || world == 0 || source < 0) return -1;
  if (questions.comm_group == nullptr || questions.translate_ranks == nullptr ||
      questions.group_free == nullptr || CAbi::BetweenGroups(comm)) {
    return -1;
  }
  Word own = 0, all = 0;  // a handle may be half as long
  int found = -1;
  if (questions.comm_group(comm, &own) != 0) return -1;
  if (questions.comm_group(world, &all) == 0) {
    if (questions.translate_ranks(own, 1, &source, all, &found) != 0) found = -1;
    questions.group_free(&all);
  }
  questions.group_free(&own);
  return found;
}

// The one for this rank; of those that nobody was told of, that with least may have to make room.
Peer& PeerOf(int rank) {
  Peer* least = nullptr;
  for (Peer& peer : peers) {
    if (peer.rank == rank) return peer;
    if (peer.told == nullptr && (least == nullptr || peer.seconds < least->seconds)) least = &peer;
  }
  *least = {rank, 0, nullptr};
  return *least;
}
static_assert(kMostTold < kRemembered);

void Tell(Peer& peer) {
  const Visit visit;
  if (!visit.good()) return;
  char text[16];
  snprintf(text, sizeof(text), "%d", peer.rank);
  const sonde_tag_t tag = {"peer", text};
  peer.told = interpose::Counter(interpose::kMpiPeerWaitSeconds, &tag, 1);
  if (peer.told != nullptr) ++told;
}

}  // namespace

void AddPeer(int source, Word comm, double seconds, double since_begin) {
  const int rank = InWorld(source, comm);
  if (rank < 0) return;
  Peer& peer = PeerOf(rank);
  peer.seconds += seconds;
  if (peer.told != nullptr) return AddSeconds(peer.told, seconds);
  if (told == kMostTold || peer.seconds < kLeastTold || peer.seconds < kTold * since_begin) return;
  Tell(peer);
  AddSeconds(peer.told, peer.seconds);
}

}  // namespace sonde::mpi
