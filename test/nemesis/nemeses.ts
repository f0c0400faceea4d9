/** The faults that a round can inject. Each starts one; what it changes about lines, clocks and disks is undone after the round. */
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AdversaryName } from '../../sim/adversaries/index.js'
import type { Random } from '../../sim/engine/random.js'
import type { Cluster } from './cluster.js'
import type { LabPeer, Report } from './lab-peer.js'
import type { Conditions } from './switch/lines.js'

/** Within this time some peer must name a hostile one, in ms. */
const NAMING_MS = 60_000
/** Inputs of each peer before a hostile one joins: with fewer, the loss gate accepts everything. */
const GATE_INPUTS = 300

/** What hostile peers do, and what the log of an honest one then says; undefined if nothing shows it. */
const HOSTILE = {
  unbounded: /the bound/,
  'forged-predictor': /worse than the current one|signed two different updates|number of updates exceeds/,
  equivocation: /has signed two different updates with one name/,
  'replayed-signatures': /without a signature|has not signed the header/,
  withholding: /receives frames but never acknowledges them/,
  'label-flip': undefined
} satisfies Partial<Record<AdversaryName, RegExp | undefined>>

export interface Nemesis {
  readonly name: string
  /** Whether a peer is hostile, which needs bounded influence, and the loss gate of linear models. */
  readonly isHostile?: boolean
  /** Whether it strikes the root of the tree, the master of MaWo and DMB. */
  readonly isOfMaster?: boolean
  /** Whether it needs `faults.c`. */
  readonly needsFaults?: boolean
  /** Least duration in seconds, if it takes longer than others. */
  readonly seconds?: number
  /** Injects the fault, for about `ms` milliseconds. */
  inflict(cluster: Cluster, random: Random, ms: number): Promise<void>
}

type Pair = Conditions['cuts'][number]

/** All pairs from one set to another. */
function pairs(from: readonly number[], to: readonly number[]): Pair[] {
  return from.flatMap(a => to.map((b): Pair => [a, b]))
}

function between(a: readonly number[], b: readonly number[]): Pair[] {
  return [...pairs(a, b), ...pairs(b, a)]
}

/** The nodes in random order, in two sets; the first has between one and all but one. */
function sides(cluster: Cluster, random: Random): [number[], number[]] {
  const nodes = random.shuffle(cluster.peers.map(peer => peer.options.node))
  const count = 1 + random.below(nodes.length - 1)
  return [nodes.slice(0, count), nodes.slice(count)]
}

function some(cluster: Cluster, random: Random): LabPeer[] {
  const peers = random.shuffle([...cluster.peers])
  return peers.slice(0, 1 + random.below(Math.max(1, Math.floor(peers.length / 2))))
}

/** Changes every line for the round. */
function lines(change: (random: Random) => object): Nemesis['inflict'] {
  return async ({ lab, base }, random, ms) => {
    lab.setLine({ ...base, ...change(random) })
    await sleep(ms)
  }
}

/**
 * A hostile peer joins, and the log of an honest peer must name it and no other peer.
 * @param sign text that the log must contain @default no text is expected
 */
function hostile(adversary: AdversaryName, sign: RegExp | undefined): Nemesis {
  return {
    name: adversary,
    isHostile: true,
    seconds: 2,
    inflict: async (cluster, _random, ms) => {
      await until('every peer has inputs for its loss gate', () =>
        cluster.peers.every(({ latest }) => (latest?.inputs ?? 0) >= GATE_INPUTS)
      )
      const peer = cluster.create(adversary)
      cluster.start(peer)
      const feeding = cluster.feedHostile(peer)
      await until('the hostile peer reports its id', () => {
        if (!peer.isRunning) throw new Error(`the hostile peer has ended: ${peer.log.at(-1)}`)
        return peer.latest !== undefined
      })
      const { id } = peer.latest as Report
      cluster.hostile.add(id)
      await sleep(ms)
      const names = (line: string) => line.includes(id) && sign?.test(line)
      if (sign) await until(`the log names ${id}`, () => cluster.peers.some(({ log }) => log.some(names)))
      if (adversary === 'equivocation') {
        const distrusts = ({ latest }: LabPeer) => latest?.distrusted?.includes(id)
        await until(`a status lists ${id} as not trusted`, () => cluster.peers.some(distrusts))
      }
      clearInterval(feeding)
      await peer.kill()
      // The log of the hostile peer itself is not checked.
      peer.accusations.length = 0
      await cluster.remove(peer)
    }
  }
}

async function until(what: string, condition: () => boolean): Promise<void> {
  for (const limit = performance.now() + NAMING_MS; !condition(); await sleep(50)) {
    if (performance.now() > limit) throw new Error(`not within ${NAMING_MS / 1000} s: ${what}`)
  }
}

/** Faults of the master. */
const OF_MASTER: Readonly<Record<string, (cluster: Cluster, master: LabPeer) => Promise<void> | void>> = {
  'master killed': (_cluster, master) => master.kill(),
  'master paused': (_cluster, master) => master.pause(),
  'master cut off': (cluster, { options: { node } }) => {
    const others = cluster.peers.map(peer => peer.options.node).filter(other => other !== node)
    cluster.lab.cut(between([node], others))
  }
}

export const nemeses: readonly Nemesis[] = [
  { name: 'none', inflict: (_cluster, _random, ms) => sleep(ms) },
  {
    name: 'partition',
    inflict: async (cluster, random, ms) => {
      cluster.lab.cut(between(...sides(cluster, random)))
      await sleep(ms)
    }
  },
  {
    name: 'one-way partition',
    inflict: async (cluster, random, ms) => {
      cluster.lab.cut(pairs(...sides(cluster, random)))
      await sleep(ms)
    }
  },
  {
    // One peer reaches all; the others reach it and their own side.
    name: 'bridge',
    inflict: async (cluster, random, ms) => {
      const [[, ...a], b] = sides(cluster, random)
      cluster.lab.cut(between(a, b))
      await sleep(ms)
    }
  },
  {
    // Each peer reaches only its neighbours in a ring.
    name: 'ring',
    inflict: async (cluster, random, ms) => {
      const nodes = random.shuffle(cluster.peers.map(peer => peer.options.node))
      const isFar = (i: number, k: number) =>
        (i - k + nodes.length) % nodes.length > 1 && (k - i + nodes.length) % nodes.length > 1
      cluster.lab.cut(nodes.flatMap((a, i) => nodes.flatMap((b, k): Pair[] => (isFar(i, k) ? [[a, b]] : []))))
      await sleep(ms)
    }
  },
  {
    name: 'flapping',
    inflict: async (cluster, random, ms) => {
      const end = performance.now() + ms
      while (performance.now() < end) {
        cluster.lab.cut(between(...sides(cluster, random)))
        await sleep(200 + 1500 * random.next())
        cluster.lab.cut([])
        await sleep(200 + 1500 * random.next())
      }
    }
  },
  {
    name: 'kill',
    inflict: async (cluster, random, ms) => {
      const killed = some(cluster, random)
      await Promise.all(killed.map(peer => peer.kill()))
      await sleep(ms)
    }
  },
  {
    name: 'kill and restart',
    inflict: async (cluster, random, ms) => {
      const end = performance.now() + ms
      while (performance.now() < end) {
        const peer = cluster.peers[random.below(cluster.peers.length)]
        await peer.kill()
        cluster.start(peer)
        await sleep(1000 + 2000 * random.next())
      }
    }
  },
  {
    name: 'pause',
    inflict: async (cluster, random, ms) => {
      for (const peer of some(cluster, random)) peer.pause()
      await sleep(ms)
    }
  },
  { name: 'loss', inflict: lines(random => ({ loss: 0.02 + 0.18 * random.next() })) },
  {
    name: 'delay',
    inflict: lines(random => {
      const delay = 50 + 450 * random.next()
      return { delay, jitter: delay * random.next() }
    })
  },
  { name: 'reordering', inflict: lines(random => ({ reordered: 0.2 * random.next(), duplicates: 0.1, delay: 20 })) },
  { name: '1 Mbit/s', inflict: lines(() => ({ rate: 125_000, delay: 30 })) },
  {
    name: 'full disk',
    inflict: async (cluster, random, ms) => {
      cluster.peers[random.below(cluster.peers.length)].fillDisk()
      await sleep(ms)
    }
  },
  {
    name: 'slow fsync',
    needsFaults: true,
    inflict: async (cluster, random, ms) => {
      for (const peer of some(cluster, random)) peer.setFaults(0, Math.round(100 + 1900 * random.next()))
      await sleep(ms)
    }
  },
  {
    name: 'clock jump',
    needsFaults: true,
    inflict: async (cluster, random, ms) => {
      for (const peer of some(cluster, random)) {
        // Between 3 seconds and an hour, forwards or backwards.
        const jump = Math.round(3000 * 1200 ** random.next())
        peer.setFaults(random.next() < 0.5 ? jump : -jump, 0)
      }
      await sleep(ms)
    }
  },
  {
    // The copy of a stopped peer's directory starts together with the peer itself.
    name: 'duplicate identity',
    inflict: async (cluster, random, ms) => {
      const peer = cluster.peers[random.below(cluster.peers.length)]
      await peer.kill()
      const copy = cluster.create()
      cpSync(join(peer.disk, 'state'), join(copy.disk, 'state'), { recursive: true })
      cluster.start(peer)
      cluster.start(copy)
      await sleep(ms)
      await cluster.remove(copy)
    }
  },
  {
    name: 'churn',
    seconds: 9,
    inflict: async (cluster, random, ms) => {
      const end = performance.now() + ms
      while (performance.now() < end) {
        const joins = cluster.create()
        cluster.add(joins)
        cluster.start(joins)
        const leaves = cluster.peers[random.below(cluster.peers.length - 1)]
        await leaves.kill(random.next() < 0.5 ? 'SIGTERM' : 'SIGKILL')
        await cluster.remove(leaves)
        await sleep(3000)
      }
    }
  },
  ...Object.entries(OF_MASTER).map(([name, strike]) => ({
    name,
    isOfMaster: true,
    inflict: async (cluster: Cluster, _random: Random, ms: number) => {
      await strike(cluster, cluster.master)
      await sleep(ms)
    }
  })),
  ...Object.entries(HOSTILE).map(([adversary, sign]) => hostile(adversary as AdversaryName, sign))
]
