/** Invitations between processes: admission, expiry, and restarts. */
import assert from 'node:assert/strict'
import { appendFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { admb, admbJson } from '../../support/admb-command.js'
import { type PeerProcess, PeerProcesses, until } from '../../support/peer-processes.js'

const TASK = ['--data', 'digits', '--rate', '50', '--batch', '16']

describe('invitations', function () {
  this.timeout(240_000)
  const processes = new PeerProcesses()
  afterEach(() => processes.stop())

  const logs = (peer: PeerProcess) => peer.logs.map(({ msg }) => msg)
  const logged = (peer: PeerProcess, pattern: RegExp) =>
    until(`a log line matches ${pattern}`, () => logs(peer).some(line => pattern.test(line)))
  const linked = (peer: PeerProcess, other: string) =>
    until(`a link with ${other}`, () => peer.latest.neighbours.includes(other))

  /** Directories of listed identities, of which the first one runs no peer. */
  async function listedPeers(count: number) {
    const dir = await processes.scratch()
    const allowed = join(dir, 'allowed.txt')
    const dirs = ['inviter', 'one', 'two'].slice(0, count + 1).map(name => join(dir, name))
    for (const identity of dirs)
      await appendFile(allowed, (await admb(['keygen', 'identity', '--dir', identity])).stdout)
    return { dir, allowed, inviter: dirs[0], dirs: dirs.slice(1) }
  }

  it('admit peers to a network with an allow-list, also after restarts', async () => {
    const { dir, allowed, inviter, dirs } = await listedPeers(2)
    const member = (index: number, ...more: string[]) =>
      processes.start(...TASK, '--allow', `${allowed},invited`, '--dir', dirs[index], ...more).ready()
    let one = await member(0)
    const [address] = one.latest.addresses
    const two = await member(1, '--peer', address)
    await linked(two, one.latest.id)

    const stranger = await processes.start(...TASK, '--peer', address).ready()
    await logged(stranger, /refused this peer: add .* to its allow-list/)

    const file = join(dir, 'invitation')
    const { id } = await admbJson(['invite', '--dir', inviter, '--out', file])
    const invited = (name: string, ...more: string[]) =>
      processes.start(...TASK, '--dir', join(dir, name), '--peer', ...more).ready()
    let guest = await invited('guest', address, '--invitation', file)
    await linked(guest, one.latest.id)
    await until('the guest follows the network', () => guest.latest.updates > 3 && guest.latest.adopted > 0)
    await logged(two, new RegExp(`${guest.latest.id} is admitted by invitation ${id}`))

    const second = await invited('second', two.latest.addresses[0], '--invitation', file)
    await until('the second guest has a neighbour', () => second.latest.neighbours.length > 0)
    await second.stop()

    // Both remember it: the member admits without an invitation, and the guest knows its list.
    await Promise.all([one.stop(), guest.stop()])
    one = await member(0, '--listen', address.replace(/\/p2p\/.*/, ''))
    guest = await invited('guest', address)
    // Either member may be its neighbour in the tree.
    await until('the guest has a neighbour', () => guest.latest.neighbours.length > 0)
    assert.deepEqual(
      logs(guest).filter(line => /refused/.test(line)),
      []
    )
    await stranger.stop()

    assert.ok((await readFile(file, 'utf8')).startsWith('admb-invitation-1~'))
  })

  it('are refused with the reason: expired, or without the option', async () => {
    const { allowed, inviter, dirs } = await listedPeers(2)
    const member = (index: number, list: string) =>
      processes.start(...TASK, '--allow', list, '--dir', dirs[index]).ready()
    const [accepting, strict] = [await member(0, `${allowed},invited`), await member(1, allowed)]
    const late = await admbJson(['invite', '--dir', inviter, '--expires', '0.001s'])
    const valid = await admbJson(['invite', '--dir', inviter])
    const join = (invitation: string, peer: PeerProcess) =>
      processes.start(...TASK, '--invitation', invitation, '--peer', peer.latest.addresses[0]).ready()
    await logged(await join(late.invitation, accepting), /refused the invitation \(it has expired\)/)
    await logged(await join(valid.invitation, strict), /refused this peer: add .* to its allow-list/)
  })

  it('are checked by the command line', async () => {
    const { dir, inviter, allowed } = await listedPeers(1)
    const fails = async (pattern: RegExp, ...args: string[]) => {
      const { code, stderr } = await admb(args)
      assert.notEqual(code, 0)
      assert.match(stderr, pattern)
    }
    const { invitation, link } = await admbJson(['invite', '--dir', inviter, '--url', 'https://host.example:7280/x'])
    assert.equal(link, `https://host.example:7280/join#invitation=${invitation}`)
    const key = join(dir, 'net.key')
    await admb(['keygen', 'network', '--out', key])
    const keyed = await admbJson(['invite', '--dir', inviter, '--url', 'http://host.example', '--network-key', key])
    const [, , digits, id] = (await readFile(key, 'utf8')).split('\n')
    assert.equal(keyed.link, `http://host.example/join#key=${digits}&invitation=${keyed.invitation}`)
    assert.ok(keyed.invitation.includes(`~${id.split('/').at(-1)}~`))
    const damaged = invitation.replace(/~(\d+)~/, (_: string, digits: string) => `~${Number(digits) + 1}~`)
    await fails(/not a whole invitation/, 'peer', ...TASK, '--invitation', damaged)
    await fails(/cannot read .*--invitation/, 'peer', ...TASK, '--invitation', join(dir, 'none'))
    await fails(/use --allow FILE,invited/, 'peer', ...TASK, '--accept-invitations')
    await fails(/contains no admb state|no state/, 'invite', '--dir', join(dir, 'none'))
    await fails(/not the address of a page/, 'invite', '--dir', inviter, '--url', 'host.example')
    await fails(/cannot write .*EEXIST/, 'invite', '--dir', inviter, '--out', allowed)
  })
})
