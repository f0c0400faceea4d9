/**
 * MaWo-DMB with leader election (Dekel et al., "Robust Distributed Online Prediction", section on master failure): workers
 * that have not heard of a master for a while take its place, lower indices sooner; after a partition every component has a
 * master of its own; of masters that hear of one another the one with more updates stays, then the lower index.
 */
import type { Predictor } from '../../src/admb/index.js'
import type { Blocks } from '../../src/learner/index.js'
import { Accumulator, type Algorithm, advance, vectorBytes, type World } from '../world.js'

interface Report {
  readonly kind: 'report'
  readonly sequence: number
  readonly term: string
  readonly sum: Blocks
  readonly count: number
}

interface News {
  readonly kind: 'news'
  readonly predictor: Predictor
  /** Names the predictor: updates and master, so that sums of two masters are never mixed. */
  readonly term: string
}

interface Site {
  predictor: Predictor
  term: string
  master: number
  /** When the master was last heard of. */
  heard: number
  sequence: number
  readonly own: Accumulator
  /** As a master: what the workers have reported for this predictor. */
  readonly batch: Accumulator
  readonly received: Map<number, number>
}

/** Whom a restarted node follows until it hears of a master. */
const NOBODY = -1

export function mawoElection(world: World): Algorithm {
  const nodes = world.topology.nodes
  const bytes = vectorBytes(world)
  const fresh = (): Site => ({
    predictor: world.start,
    term: '0',
    master: 0,
    heard: world.now,
    sequence: 0,
    own: new Accumulator(world.learner),
    batch: new Accumulator(world.learner),
    received: new Map()
  })
  const sites = Array.from({ length: nodes }, fresh)
  const patience = 4 * (world.period + world.latency)
  let adoptions = 0
  let discarded = 0

  const announce = (node: number) => {
    const { predictor, term } = sites[node]
    for (let other = 0; other < nodes; other++) {
      if (other !== node) world.send(node, other, { kind: 'news', predictor, term } satisfies News, 2 * bytes + 16)
    }
  }
  const drop = (site: Site) => {
    discarded += site.own.take().count + site.batch.take().count
  }
  const updateIfFull = (node: number) => {
    const site = sites[node]
    if (site.master !== node || site.batch.count + site.own.count < world.batch) return
    const mine = site.own.take()
    site.batch.addSum(mine.sum, mine.count)
    const { sum, count } = site.batch.take()
    site.predictor = advance(world, site.predictor, sum, count)
    site.term = `${site.predictor.id.updates}/${node}`
    announce(node)
  }
  /** Whether news of another master outweighs the master that a node follows or is. */
  const outweighs = (site: Site, from: number, predictor: Predictor) => {
    const theirs = predictor.id.updates
    const ours = site.predictor.id.updates
    return theirs > ours || (theirs === ours && (site.master === NOBODY || from <= site.master))
  }
  return {
    serving: node => sites[node].predictor.average,
    input(node, examples) {
      const site = sites[node]
      site.own.add(site.predictor.parameters, examples)
      updateIfFull(node)
    },
    tick(node) {
      const site = sites[node]
      if (site.master === node) return announce(node)
      // Lower indices lose patience sooner, so that mostly one takes over.
      if (world.now - site.heard > patience + node * world.latency) {
        site.master = node
        site.received.clear()
        announce(node)
        return
      }
      if (site.own.count === 0 || site.master === NOBODY) return
      const { sum, count } = site.own.take()
      const report: Report = { kind: 'report', sequence: ++site.sequence, term: site.term, sum, count }
      world.send(node, site.master, report, bytes + 24)
    },
    receive(to, from, message) {
      const told = message as Report | News
      const site = sites[to]
      if (told.kind === 'report') {
        const isNew = told.sequence > (site.received.get(from) ?? 0)
        if (isNew) site.received.set(from, told.sequence)
        if (isNew && site.master === to && told.term === site.term) {
          site.batch.addSum(told.sum, told.count)
          updateIfFull(to)
        } else if (isNew) discarded += told.count
        return
      }
      if (!outweighs(site, from, told.predictor)) return
      site.heard = world.now
      site.master = from
      if (told.term === site.term) return
      drop(site)
      site.predictor = told.predictor
      site.term = told.term
      adoptions++
    },
    timer: () => undefined,
    crash(node) {
      drop(sites[node])
    },
    // The predictor is on the disk; who is master now has to be heard.
    restart(node, disk) {
      const { predictor, term, sequence } = sites[node]
      const stored = disk === 'kept' ? { predictor, term } : undefined
      // A new identity would begin to count anew; its number on the network stays, and so the count goes on.
      sites[node] = { ...fresh(), ...stored, sequence, master: NOBODY }
    },
    tally: () => ({ updates: Math.max(...sites.map(({ predictor }) => predictor.id.updates)), adoptions, discarded })
  }
}
