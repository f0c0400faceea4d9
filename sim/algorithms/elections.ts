/**
 * How the nodes of MaWo-DMB agree on a new master. Dekel et al. leave the choice of the algorithm open. An election only decides who
 * becomes master; MaWo notices that a master is silent, and a master broadcasts its predictor in every period.
 */
import type { World } from '../world.js'

/** A node as a candidate. One with more updates is a better master, then one with a lower index. */
export interface Candidate {
  readonly index: number
  readonly updates: number
}

export function isBetterCandidate(a: Candidate, b: Candidate): boolean {
  return a.updates === b.updates ? a.index < b.index : a.updates > b.updates
}

/** What an election reads and changes of MaWo's nodes. */
export interface ElectionHost {
  readonly world: World
  /** Time without a message of a master after which a node starts an election, in virtual milliseconds. */
  readonly timeout: number
  candidate(node: number): Candidate
  masterOf(node: number): number
  /** Time since a node has heard its master. */
  silence(node: number): number
  /** The node follows that master from now on; its own index makes it master. */
  follow(node: number, master: number): void
  send(from: number, to: number, message: ElectionMessage): void
  broadcast(from: number, message: ElectionMessage): void
}

export interface Election {
  /** A period has passed. */
  tick(node: number): void
  /** A message of an election arrives. */
  receive(to: number, from: number, message: ElectionMessage): void
  /** The node has lost what it knew. */
  restart(node: number): void
  /** Whether a node also follows a master that it has not elected, if its predictor has more updates, or as many and a lower index. */
  readonly followsOthers: boolean
}

export type ElectionMessage = { readonly kind: 'election' } & (WaveMessage | InvitationMessage)

/** Bytes of a message of an election. */
export const ELECTION_BYTES = 16

/** The node that is silent for the timeout becomes master itself. Lower indices have shorter timeouts. */
export function byTimeout({ world, timeout, masterOf, silence, follow }: ElectionHost): Election {
  return {
    tick(node) {
      if (masterOf(node) !== node && silence(node) > timeout + node * world.latency) follow(node, node)
    },
    receive: () => undefined,
    restart: () => undefined,
    followsOthers: true
  }
}

interface WaveMessage {
  /** `wave` goes out from its initiator, `here` confirms its receipt, `echo` returns, `elected` ends it. */
  readonly step: 'wave' | 'here' | 'echo' | 'elected'
  readonly wave: WaveName
  /** The best candidate of a subtree, or the elected one. */
  readonly best: Candidate
}

/** Waves with higher numbers extinguish others, then those of lower initiators. */
interface WaveName {
  readonly number: number
  readonly initiator: number
}

/** What a node knows of the wave that it has joined. */
interface Wave {
  readonly name: WaveName
  /** Neighbour that the wave came from; undefined at its initiator. */
  readonly parent: number | undefined
  readonly startedAt: number
  /** Neighbours whose echo is missing, and whether they have confirmed the wave. */
  readonly pending: Map<number, boolean>
  best: Candidate
  isOver: boolean
}

/**
 * The echo algorithm with extinction, over the spanning tree (Chang 1982; Tel, "Introduction to Distributed Algorithms", 7.3). A wave
 * goes from an initiator to all nodes, and its echo returns the best candidate, which becomes master. Neighbours that do not
 * confirm the wave in time are down. A master that is not silent lets no wave end.
 */
export function overTree(host: ElectionHost): Election {
  const { world, timeout, candidate, masterOf, silence, follow, send, broadcast } = host
  const isMaster = (node: number) => masterOf(node) === node
  const waves: (Wave | undefined)[] = world.topology.neighbours.map(() => undefined)
  const numbers = new Int32Array(world.topology.nodes)
  const confirmation = timeout / 4

  const message = (step: WaveMessage['step'], wave: WaveName, best: Candidate): ElectionMessage => ({
    kind: 'election',
    step,
    wave,
    best
  })
  const join = (node: number, name: WaveName, parent?: number) => {
    numbers[node] = name.number
    const wave: Wave = { name, parent, startedAt: world.now, pending: new Map(), best: candidate(node), isOver: false }
    waves[node] = wave
    for (const neighbour of world.neighbours(node)) {
      if (neighbour === parent) continue
      wave.pending.set(neighbour, false)
      send(node, neighbour, message('wave', name, wave.best))
    }
    endIfComplete(node, wave)
  }
  const endIfComplete = (node: number, wave: Wave) => {
    if (wave.isOver || wave.pending.size > 0) return
    wave.isOver = true
    if (wave.parent !== undefined) send(node, wave.parent, message('echo', wave.name, wave.best))
    else {
      broadcast(node, message('elected', wave.name, wave.best))
      follow(node, wave.best.index)
    }
  }
  const extinguishes = (name: WaveName, node: number) => {
    const { number, initiator } = waves[node]?.name ?? { number: numbers[node], initiator: Number.POSITIVE_INFINITY }
    return name.number > number || (name.number === number && name.initiator < initiator)
  }
  return {
    tick(node) {
      if (isMaster(node)) return
      const wave = waves[node]
      if (wave && world.now - wave.startedAt > confirmation) {
        for (const [neighbour, isConfirmed] of wave.pending) if (!isConfirmed) wave.pending.delete(neighbour)
        endIfComplete(node, wave)
      }
      const isWaiting = wave !== undefined && world.now - wave.startedAt <= timeout
      if (silence(node) > timeout && !isWaiting) join(node, { number: numbers[node] + 1, initiator: node })
    },
    receive(to, from, received) {
      if (!('wave' in received)) return
      const { step, wave: name, best } = received
      const wave = waves[to]
      if (step === 'wave') {
        send(to, from, message('here', name, best))
        if (!isMaster(to) && extinguishes(name, to)) join(to, name, from)
        return
      }
      if (step === 'elected') {
        if (isMaster(to) || name.number < numbers[to]) return
        numbers[to] = name.number
        follow(to, best.index)
        return
      }
      if (wave?.name.number !== name.number || wave.name.initiator !== name.initiator || wave.isOver) return
      if (step === 'here') {
        if (wave.pending.has(from)) wave.pending.set(from, true)
        return
      }
      wave.pending.delete(from)
      if (isBetterCandidate(best, wave.best)) wave.best = best
      endIfComplete(to, wave)
    },
    restart(node) {
      waves[node] = undefined
    },
    followsOthers: true
  }
}

interface InvitationMessage {
  /** A master looks for others, which answer, are invited, and accept for their members too. */
  readonly step: 'ask' | 'answer' | 'invite' | 'accept'
  readonly candidate: Candidate
  /** With `invite`: the master to follow. */
  readonly master: number
}

/**
 * The invitation algorithm (Garcia-Molina, "Elections in a distributed computing system", 1982), made for partitions: each group has
 * a master. A node whose master is silent is a group of its own. Masters look for others in each period, and the best candidate
 * invites their groups to join its own. Nodes follow only the master whose invitation they have accepted.
 */
export function byInvitation(host: ElectionHost): Election {
  const { world, timeout, candidate, masterOf, silence, follow, send, broadcast } = host
  const isMaster = (node: number) => masterOf(node) === node
  /** Members of a master's group. */
  const members = world.topology.neighbours.map(() => new Set<number>())
  for (const node of members.keys()) if (masterOf(node) !== node) members[masterOf(node)].add(node)
  /** Masters that have answered. */
  const answered = world.topology.neighbours.map(() => new Set<number>())
  const message = (step: InvitationMessage['step'], node: number, master: number): ElectionMessage => ({
    kind: 'election',
    step,
    candidate: candidate(node),
    master
  })
  const invite = (node: number, others: Iterable<number>, master: number) => {
    for (const other of others) if (other !== node) send(node, other, message('invite', node, master))
  }
  return {
    tick(node) {
      if (isMaster(node)) {
        invite(node, answered[node], node)
        answered[node].clear()
        broadcast(node, message('ask', node, node))
      } else if (silence(node) > timeout) {
        members[node].clear()
        follow(node, node)
      }
    },
    receive(to, from, received) {
      if (!('master' in received)) return
      const { step, master, candidate: sender } = received
      if (step === 'ask') {
        if (isMaster(to) && isBetterCandidate(sender, candidate(to))) send(to, from, message('answer', to, to))
      } else if (step === 'answer') {
        if (isMaster(to) && isBetterCandidate(candidate(to), sender)) answered[to].add(from)
      } else if (step === 'accept') {
        if (isMaster(to)) members[to].add(from)
      } else {
        if (isMaster(to)) {
          if (!isBetterCandidate(sender, candidate(to))) return
          invite(to, members[to], master)
          members[to].clear()
        } else if (from !== masterOf(to)) return
        follow(to, master)
        send(to, master, message('accept', to, master))
      }
    },
    restart(node) {
      members[node].clear()
      answered[node].clear()
    },
    followsOthers: false
  }
}
