"""A man in the middle: somebody has the wires between the daemons in his hands, and every byte on them.
He can read nothing of what they say, change nothing of it, lead nobody elsewhere, and make nobody speak
an earlier version. Whatever he does costs at most a link, which is made anew."""

from step import story, wait_for


def hello_of(version):
    """How the hello of a daemon of this version begins: length, type, version, length of the public key."""
    return bytes([35, 0, 0, 0, 1, version, 32]).hex()


def told(log, text):
    return any(text in line for line in log)


def whole_again(step, since):
    step.wires.reset()
    step.check_whole_since(since())
    for node in step.nodes:
        node.add(1)
    step.wait_total()
    rows = step.rows()
    assert max(total for _, _, total in rows) <= step.injected, story(rows, 0)
    step.finish()
    step.check_stored_total()


def test_he_reads_nothing(make_step):
    """A remark of a program goes from a leaf over its parent to the head, and from there on nowhere."""
    step = make_step(nodes=4)
    marker = "a remark for nobody else"
    step.wires.look_for(marker)
    step.start()
    assert step.parent(3) == 0
    step.at(3).application.remark(marker)
    step.finish()
    assert marker in [remark["text"] for remark in step.stored()["moments"]["remarks"]]
    assert step.wires.seen() == 0


def test_he_changes_nothing(make_step):
    """A bit of every twentieth packet, whatever it is of: lengths, types, payloads, tags, handshakes."""
    step = make_step(nodes=8, seed=3)
    step.start()
    for node in step.nodes:
        node.add(10 + node.id)
    step.wait_total()
    everybody = [step.address, *(node.address for node in step.nodes)]
    for one in everybody:
        for other in everybody:
            if one != other:
                step.wires.meddle(one, other, flip=0.05)

    def changed():
        hosts = ["head", *(node.host for node in step.nodes)]
        return sum("not the peer's next one" in line for host in hosts for line in step.log_of(host))

    for _ in range(5):
        before = changed()
        for node in step.nodes:
            node.add(1)
        wait_for(lambda: changed() > before, "a link that ends for what he does to it")
    whole_again(step, step.now)


def test_he_leads_nobody_elsewhere(make_step):
    """Who is to be the child of node 2 finds another parent of the same step, with the same key."""
    step = make_step(nodes=7)
    step.start(6)
    wrong, right, child = step.at(1), step.at(2), step.nodes[6]
    established, listening = wrong.daemon.connections()
    (port,) = {local for local, _, _ in established} & listening
    step.wires.meddle(child.address, right.address, lead=[wrong.address, port])
    child.start()
    child.application.wait_ready()
    step.wait_registered(step.nodes)
    wait_for(lambda: told(child.log(), "is not whom we asked for"), "its refusal")
    assert not told(child.log(), "data goes to node 2")
    whole_again(step, step.now)


def test_he_makes_nobody_speak_an_earlier_version(make_step):
    """Two daemons that speak version 3 as well as 2: he takes 3 out of a hello."""
    step = make_step(nodes=3, next_release=[2, "head"])
    step.start(2)
    late = step.nodes[2]
    step.wires.meddle(late.address, step.address, rewrite=[hello_of(3), hello_of(2)])
    late.start()
    late.application.wait_ready()
    wait_for(lambda: told(late.log(), "does not know the step's key"), "its refusal")
    step.wires.reset()  # it comes again for a while
    step.wait_registered(step.nodes)
    late.add(5)
    step.wait_total()
    whole_again(step, step.now)
