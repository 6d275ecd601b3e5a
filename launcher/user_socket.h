// A launcher's end of a Unix socket that keeps packets apart (SOCK_SEQPACKET) and whose other end a
// process of the user's has. Nothing here blocks.
//
// Such a process may send open files along with a packet. Whoever drops the last copy of such a
// file may have to wait for as long as the user likes, as for a socket that lingers (SO_LINGER). So
// slurmstepd, which is root, neither receives them nor lets the kernel drop them there: since Linux
// 6.16 they are refused where they are sent; before, a packet that has some is left unread, and
// with it all that comes after. Such a packet is dropped when the launcher's process has ended, for
// there the kernel does not wait.
//
// Not a pipe: a process that writes into a pipe locks it, and when the kernel waits for the memory
// that is written from, whoever reads or closes the pipe waits too, blocking or not.
//
// Thread safety: functions without state.
#pragma once

#include "core/unique_fd.h"

namespace sonde::launch {

void RefuseDescriptors(int socket);
// What the next packet is, which is not taken. kNone: there is none now (errno is EAGAIN), or the
// socket fails; then nothing may be read either, since one with descriptors may have come
// meanwhile. The end of the connection looks like a packet without descriptors.
enum class NextPacket : unsigned char { kNone, kPlain, kWithDescriptors };
NextPacket PeekPacket(int socket);
// Ends the connection. The descriptor stays open until the process ends, as something may be
// unread.
void EndAndLeaveOpen(UniqueFd& socket);

}  // namespace sonde::launch
