"""A man in the middle: somebody has the wires between the daemons in his hands, and every byte on them.
He can read nothing of what they say, change nothing of it, lead nobody elsewhere, and make nobody speak
an earlier version. Whatever he does costs at most a link, which is made anew."""

from step import story, wait_for

# What says in a nonce that its maker speaks version 7 of the protocol, and the same for version 6.
VERSION_7, VERSION_6 = b"sonde v\x07".hex(), b"sonde v\x06".hex()


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
    step = make_step(nodes=3)
    step.start(2)
    late = step.nodes[2]
    step.wires.meddle(late.address, step.address, rewrite=[VERSION_7, VERSION_6])
    late.start()
    late.application.wait_ready()
    wait_for(lambda: told(late.log(), "somebody between us"), "its refusal")
    step.wires.reset()  # it comes again for a while
    step.wait_registered(step.nodes)
    late.add(5)
    step.wait_total()
    whole_again(step, step.now)


def port_for_children(node):
    """Of a node that has some."""
    established, listening = node.daemon.connections()
    (port,) = {local for local, _, _ in established} & listening
    return port


def test_he_finds_no_daemon_of_the_release_before_that_proves_the_key_for_the_head(make_step):
    """What node 0 answers names nobody, so it would do as anybody's answer."""
    step = make_step(nodes=5, earlier=[0])
    step.start(4, in_turn=True)
    wrong, late = step.at(0), step.nodes[4]
    step.wires.look_for(step.name.split(".")[0])  # the job, which a registration names
    step.wires.meddle(late.address, step.address, lead=[wrong.address, port_for_children(wrong)])
    late.start()
    late.application.wait_ready()
    wait_for(lambda: told(late.log(), "somebody between us"), "its refusal")
    assert step.wires.seen() == 0
    step.wires.reset()
    step.wait_registered(step.nodes)
    whole_again(step, step.now)


def test_he_finds_none_for_a_parent(make_step):
    step = make_step(nodes=7, earlier=[1])
    step.start(6, in_turn=True)
    wrong, right, child = step.at(1), step.at(2), step.nodes[6]
    step.wires.meddle(child.address, right.address, lead=[wrong.address, port_for_children(wrong)])
    child.start()
    child.application.wait_ready()
    step.wait_registered(step.nodes)
    wait_for(lambda: told(child.log(), "somebody between us"), "its refusal")
    assert not told(child.log(), "data goes to node 2")
    whole_again(step, step.now)
