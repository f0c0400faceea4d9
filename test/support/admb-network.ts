/**
 * Real AdmbNodes on an in-memory network without time. Links hold frames in flight; a schedule of actions, which is plain data and
 * can be shrunk, decides which node learns, ticks, sends, receives, crashes or is rewired next. All safety properties are checked
 * after every action.
 */
import assert from 'node:assert/strict'
import {
  AdmbNode,
  type Batch,
  compareIds,
  type Effect,
  formatId,
  type Header,
  isFragment,
  type Precedence,
  type Predictor,
  type Recipe
} from '../../src/admb/index.js'
import { MAX_STEPS } from '../../src/admb/state/vectors.js'
import type { Blocks } from '../../src/learning/index.js'
import { valuesOf } from '../../src/numeric/lattice.js'
import { addToyGradient, assertConsistent, latticeToy, toy, toyLayout, toyStart } from './toy.js'

export interface Link {
  readonly number: number
  readonly ends: readonly [number, number]
  /** Whether each end holds the session. */
  readonly up: [boolean, boolean]
  /** Frames in flight to each end. */
  readonly inFlight: [Uint8Array[], Uint8Array[]]
  /** Number of fragments sent to each end since the last frame. */
  readonly fragmentsAhead: [number, number]
}

interface Host {
  readonly origin: string
  incarnation: number
  node: AdmbNode
  disk: Uint8Array
  /** Bytes of the frames that `node` has sent. */
  bytes: number
  period: number
  /** Period in which the current predictor was adopted. */
  since: number
}

export interface WorldOptions {
  readonly origins: readonly string[]
  readonly batch: number
  readonly carry: number
  /** Size of the toy model: maximum number of inputs in a run. */
  readonly inputs?: number
  readonly pushBytes?: number
  readonly precedence?: Precedence
  /** Frames with larger vectors are fragmented. */
  readonly fragmentBytes?: number
  /** Whether sums are integers. */
  readonly isLattice?: boolean
  readonly isOrdered?: boolean
  /** Bytes of integer sums that a node keeps for a neighbour. */
  readonly keptBytes?: number
}

export class World {
  readonly hosts: Host[]
  readonly links = new Map<number, Link>()
  /** Inputs so far: host, incarnation, predictor, period. */
  readonly inputs: {
    readonly host: number
    readonly incarnation: number
    readonly at: string
    readonly period: number
  }[] = []
  readonly batches = new Map<string, { readonly header: Header; readonly batch: Batch }>()
  readonly predictors = new Map<string, Predictor>()
  readonly start: Predictor
  readonly #options: WorldOptions
  readonly #inputs: number
  readonly recipe: Recipe
  /** Number of fragments that were sent. */
  fragments = 0
  #sessions = 0

  constructor(options: WorldOptions) {
    this.#options = options
    this.#inputs = options.inputs ?? 256
    this.recipe = options.isLattice ? latticeToy : toy
    this.start = toyStart(this.#inputs, this.recipe)
    this.predictors.set(formatId(this.start.id), this.start)
    this.hosts = options.origins.map(origin => {
      const node = this.#node(origin, 1)
      return { origin, incarnation: 1, node, disk: node.storage.save(), bytes: 0, period: 0, since: 0 }
    })
  }

  #node(self: string, incarnation: number): AdmbNode {
    const { inputs: _inputs, origins: _origins, isLattice: _isLattice, ...options } = this.#options
    const layout = toyLayout(this.#inputs)
    return new AdmbNode({ ...this.recipe, self, incarnation, layout, initial: this.start, ...options })
  }

  /** One input at a host; ignored if the toy model has no inputs left. */
  input(h: number): void {
    const host = this.hosts[h]
    const i = this.inputs.length
    if (i >= this.#inputs) return
    const at = formatId(host.node.predictor.id)
    this.inputs.push({ host: h, incarnation: host.incarnation, at, period: host.period })
    addToyGradient(host.node.accumulator, i)
    host.node.added(1)
    this.#observe(h)
  }

  tick(h: number): void {
    this.hosts[h].node.tick()
    this.hosts[h].period++
    this.#observe(h)
  }

  checkpoint(h: number): void {
    this.hosts[h].disk = this.hosts[h].node.storage.save()
  }

  /** The node loses memory and links; the disk has the last checkpoint and the incarnation. */
  crash(h: number): void {
    const host = this.hosts[h]
    for (const link of this.links.values()) for (const side of [0, 1]) if (link.ends[side] === h) link.up[side] = false
    host.incarnation++
    host.node = this.#node(host.origin, host.incarnation)
    host.node.restore(host.disk)
    host.bytes = 0
    host.since = host.period
  }

  linked(a: number, b: number): Link | undefined {
    return [...this.links.values()].find(({ ends: [x, y] }) => (x === a && y === b) || (x === b && y === a))
  }

  connect(a: number, b: number): Link {
    const number = ++this.#sessions
    const link: Link = { number, ends: [a, b], up: [true, true], inFlight: [[], []], fragmentsAhead: [0, 0] }
    this.links.set(number, link)
    this.#assertKeepsOwn(a, () => this.hosts[a].node.connect(number, number, this.hosts[b].origin))
    this.#assertKeepsOwn(b, () => this.hosts[b].node.connect(number, number, this.hosts[a].origin))
    return link
  }

  /** One end loses the session; the link is removed when both have. */
  cut(link: Link, side: 0 | 1): void {
    if (link.up[side]) {
      link.up[side] = false
      const h = link.ends[side]
      this.#assertKeepsOwn(h, () => this.hosts[h].node.disconnect(link.number))
    }
    if (!link.up[0] && !link.up[1]) this.links.delete(link.number)
  }

  /** Sends the next frame of one end, if any. */
  send(link: Link, side: 0 | 1): boolean {
    if (!link.up[side]) return false
    const frame = this.hosts[link.ends[side]].node.frame(link.number)
    if (frame === undefined) return false
    this.#enqueue(link, (1 - side) as 0 | 1, frame)
    return true
  }

  #enqueue(link: Link, to: 0 | 1, frame: Uint8Array): void {
    link.inFlight[to].push(frame)
    const host = this.hosts[link.ends[1 - to]]
    host.bytes += frame.length
    const { sums, steps, predictors, other } = host.node.inspect.traffic
    // A frame is counted when it is composed.
    assert.ok(sums + steps + predictors + other >= host.bytes, 'bytes that are not counted')
    link.fragmentsAhead[to] = isFragment(frame) ? link.fragmentsAhead[to] + 1 : 0
    if (isFragment(frame)) this.fragments++
    // Three blocks of each step of a chain, and of the sum.
    assert.ok(link.fragmentsAhead[to] <= 3 * (MAX_STEPS + 1), `${link.fragmentsAhead[to]} fragments without a frame`)
  }

  /** Delivers one of the frames in flight to an end, optionally twice. */
  deliver(link: Link, side: 0 | 1, which: number, twice: boolean): void {
    const bag = link.inFlight[side]
    if (bag.length === 0) return
    const [frame] = bag.splice(which % bag.length, 1)
    if (!link.up[side]) return
    const h = link.ends[side]
    const { node } = this.hosts[h]
    node.receive(link.number, frame)
    this.#observe(h)
    if (!twice) return
    const before = this.#fingerprint(h)
    node.receive(link.number, frame)
    assert.deepEqual(node.takeEffects(), [], 'a duplicated frame has effects')
    assert.deepEqual(this.#fingerprint(h), before, 'a duplicated frame changes something')
  }

  /** Every node ticks once, and all frames are delivered in order. */
  round(): void {
    for (let h = 0; h < this.hosts.length; h++) this.tick(h)
    this.flush()
  }

  /** Sends and delivers frames until no node has any. */
  flush(): void {
    for (let more = true; more; ) {
      more = false
      for (const link of this.links.values()) {
        for (const side of [0, 1] as const) {
          // A frame with its fragments, so that fragments take no more rounds than whole frames.
          do more = this.send(link, side) || more
          while (link.fragmentsAhead[side === 0 ? 1 : 0] > 0 && this.hosts[link.ends[side]].node.hasFrame(link.number))
        }
      }
      for (const link of this.links.values()) {
        for (const side of [0, 1] as const) while (link.inFlight[side].length > 0) this.deliver(link, side, 0, false)
      }
    }
  }

  /** The batches of a predictor's lineage, oldest first, from the common start. */
  ancestry(predictor: Predictor): { readonly header: Header; readonly batch: Batch }[] {
    const result = []
    for (let id = predictor.id; id.updates > 0; ) {
      const logged = this.batches.get(formatId(id))
      assert.ok(logged, `${formatId(id)} has no recorded batch`)
      result.unshift(logged)
      id = logged.header.parent
    }
    return result
  }

  #fingerprint(h: number): unknown {
    const { node } = this.hosts[h]
    const held = [...this.links.values()].map(link => node.inspect.neighbourSum(link.number)?.count)
    return [formatId(node.predictor.id), node.gradients, node.ownGradients, held]
  }

  /** Property 11: rewiring loses no own gradients, unless it enables an update that uses them. */
  #assertKeepsOwn(h: number, action: () => void): void {
    const { node } = this.hosts[h]
    const { ownGradients, predictor } = node
    action()
    if (node.predictor === predictor)
      assert.equal(node.ownGradients, ownGradients, 'rewiring changed the own gradients')
    this.#observe(h)
  }

  #observe(h: number): void {
    const host = this.hosts[h]
    for (const effect of host.node.takeEffects()) this.#check(h, effect)
    for (const link of this.links.values()) {
      const held = host.node.inspect.neighbourSum(link.number)
      if (held === undefined) continue
      // Neither cancelled nor unknown inputs.
      assert.ok(
        held.sum[0].findLastIndex(integer => integer !== 0) < this.inputs.length,
        'a sum contains an input that no node has learned'
      )
      // Property 5: no echo.
      const own = held.contributors.some(c => c.origin === host.origin && c.incarnation === host.incarnation)
      assert.ok(!own, 'a held sum contains own gradients')
      const uses = this.#usesIn(held.sum, host.node.predictor)
      assert.equal(total(uses[0]), held.count, 'a held sum states another count')
      assertConsistent(uses)
    }
  }

  /** A sum in gradients. */
  #usesIn(sum: Blocks, at: Predictor): Blocks {
    const grid = this.recipe.rule.grid?.(at, at.id.updates)
    return grid ? valuesOf(sum as Float32Array[], grid) : sum
  }

  #check(h: number, effect: Effect): void {
    const host = this.hosts[h]
    assert.notEqual(effect.kind, 'refused', effect.kind === 'refused' ? effect.reason : '')
    if (effect.kind === 'refused') return
    if (effect.kind === 'announced') {
      const link = this.links.get(effect.edge)
      link?.inFlight[link.ends[0] === h ? 1 : 0].push(effect.bytes)
      return
    }
    if (effect.kind !== 'updated' && effect.kind !== 'adopted' && effect.kind !== 'rejected') assert.fail(effect.kind)
    const { predictor } = effect
    const key = formatId(predictor.id)
    const known = this.predictors.get(key)
    // Property 1: identity.
    if (known)
      for (const vector of ['parameters', 'average', 'state'] as const)
        assert.deepEqual(predictor[vector], known[vector])
    this.predictors.set(key, predictor)
    assertConsistent(predictor.parameters)
    if (effect.kind === 'updated') this.#checkBatch(h, effect.header, effect.batch)
    // Property 3: each input at most once on any lineage.
    for (const uses of predictor.parameters[0]) assert.ok(uses <= 1, `an input was used ${uses} times on one lineage`)
    host.since = host.period
  }

  #checkBatch(h: number, header: Header, batch: Batch): void {
    const host = this.hosts[h]
    const key = formatId(header.id)
    assert.ok(!this.batches.has(key), `${key} was computed twice`)
    this.batches.set(key, { header, batch })
    assert.ok(compareIds(header.id, header.parent) > 0)
    // Property 4: size.
    assert.ok(batch.count >= this.#options.batch)
    const parent = this.predictors.get(formatId(header.parent))
    assert.ok(parent)
    const sum = this.#usesIn(batch.sum, parent)
    assert.equal(total(sum[0]), batch.count, 'a batch states another count')
    // Property 3: purity.
    sum[0].forEach((uses, i) => {
      if (uses === 0) return
      const { at } = this.inputs[i]
      if (this.#options.carry === 0) assert.equal(at, formatId(header.parent), 'a gradient of another predictor')
    })
    assert.equal(header.id.origin, host.origin)
  }
}

export function total(block: Float32Array): number {
  return block.reduce((sum, value) => sum + value, 0)
}
