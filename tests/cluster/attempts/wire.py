"""Attempts of who hears what crosses the network."""

import base64

from attempts.asking import asked
from attempts.head import frames, knock
from attempts.making import Refused, attempt
from attempts.world import REMARK
from conftest import OTHER_USER, USER


def among_daemons(world):
    """What was said to the head but for HTTP, which is not encrypted, and what Slurm's own programs said."""
    clear = {world.live.port, world.serve.port}
    return {ends: data for ends, data in world.wire.items() if not clear & set(ends)}


def heard(streams, *texts):
    found = [ends for ends, data in streams.items() if any(text in data for text in texts)]
    size = sum(map(len, streams.values()))
    return f"heard between ports {found[0]}" if found else Refused(f"not in {size} bytes of {len(streams)} streams")


@attempt("wire", "hears the step's key")
def hear_key(world, user):
    raw = bytes.fromhex(world.key)
    forms = [world.key.encode(), world.key.upper().encode(), raw, base64.b64encode(raw)]
    return heard(world.wire, *forms)


@attempt("wire", "opens what munge wrapped, which it heard, as {}", control="root", each=(OTHER_USER, USER))
def open_credentials(world, user, one):
    opened = [world.unmunge(credential, user if user == "root" else one) for credential in world.credentials]
    return "the key" if any(world.key in text for text in opened) else Refused(f"munge opens none of {len(opened)}")


@attempt("wire", "hears the token that commands and sonde serve show to the head")
def hear_token(world, user):
    # What is sent as it is can be heard: the test showed the server's token so.
    assert not isinstance(heard(world.wire, world.serve.token.encode()), Refused)
    assert not isinstance(heard(world.wire, b"Authorization: Sonde proof="), Refused)
    token = world.live.token.encode()
    # As a password it would be in base64, at one of three places.
    return heard(world.wire, token, *(base64.b64encode(bytes(n) + token)[4:-4] for n in range(3)))


# A metric's name is packed, so that even without the sealing it would not be found.
@attempt("wire", "hears between daemons what the application has remarked")
def hear_application(world, user):
    # Over HTTP, which is not encrypted, it can be heard.
    assert not isinstance(heard(world.wire, REMARK.encode()), Refused)
    daemons = among_daemons(world)
    assert any(world.rendezvous in ends and len(data) > 1000 for ends, data in daemons.items()), "they talked"
    return heard(daemons, REMARK.encode())


@attempt("wire", "says again to the head what a node's daemon said")
def replay_node(world, user):
    said = {ends: data for ends, data in world.wire.items() if ends[1] == world.rendezvous and data}
    # The same words had the head talk to their first speaker: more than the offer.
    ends, words = max(said.items(), key=lambda one: len(one[1]))
    back = world.wire[(ends[1], ends[0])]
    assert len(frames(words)[0]) > 2 and len(frames(back)[0]) > 2
    return knock(world, user, words)


@attempt("wire", "sends again a proof that a command has sent")
def replay_proof(world, user):
    for ends, data in world.wire.items():
        if ends[1] == world.live.port and b"Authorization: Sonde proof=" in data:
            first, proven = [part + b"\r\n\r\n" for part in data.split(b"\r\n\r\n")[:2]]
            break
    assert b"Sonde nonce=" in first and b"Sonde proof=" in proven
    assert b"HTTP/1.1 200 " in world.wire[(ends[1], ends[0])], "it was answered when it was new"
    proven = proven.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n").decode("latin-1")
    return asked(world, user, world.http, proven, [first.decode("latin-1"), proven])
