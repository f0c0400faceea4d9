/**
 * Properties of ADMB under loss, duplication, reordering, delay, crash, restart, rewiring (including cycles), and sessions that
 * one end loses before the other. Schedules of these faults are generated, run on real nodes, and shrunk.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { compareIds, formatId, nextPredictor } from '../../../src/admb/index.js'
import { type Link, total, World } from '../../support/admb-network.js'
import { share } from '../../support/runs.js'

const RUNS = Number(process.env.ADMB_RUNS ?? share(4000))
/** Rounds in which every loss is repaired: at each hop the longest backoff may have to expire, for what was lost and its answer. */
const PATIENCE = 400

type Action = readonly [kind: Kind, x: number, y: number]
const kinds = [
  'input',
  'tick',
  'send',
  'deliver',
  'twice',
  'drop',
  'exchange',
  'catch up',
  'connect',
  'cut',
  'crash',
  'checkpoint'
] as const
type Kind = (typeof kinds)[number]

const action = fc.tuple(
  fc.oneof(
    { weight: 30, arbitrary: fc.constant<Kind>('input') },
    { weight: 30, arbitrary: fc.constant<Kind>('exchange') },
    { weight: 10, arbitrary: fc.constant<Kind>('catch up') },
    { weight: 6, arbitrary: fc.constant<Kind>('tick') },
    { weight: 10, arbitrary: fc.constant<Kind>('send') },
    { weight: 10, arbitrary: fc.constant<Kind>('deliver') },
    { weight: 6, arbitrary: fc.constant<Kind>('twice') },
    { weight: 3, arbitrary: fc.constant<Kind>('drop') },
    { weight: 6, arbitrary: fc.constant<Kind>('connect') },
    { weight: 3, arbitrary: fc.constant<Kind>('cut') },
    { weight: 1, arbitrary: fc.constant<Kind>('crash') },
    { weight: 2, arbitrary: fc.constant<Kind>('checkpoint') }
  ),
  fc.nat(1000),
  fc.nat(1000)
)

const scenario = fc.record({
  nodes: fc.integer({ min: 2, max: 6 }),
  labels: fc.shuffledSubarray(['a', 'b', 'c', 'd', 'e', 'f'], { minLength: 6 }),
  batch: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 10, max: 60 })),
  carry: fc.constantFrom(0, 0, 1, 5, 25),
  pushBytes: fc.constantFrom(0, 65536),
  fragmentBytes: fc.constantFrom(undefined, undefined, 0, 60, 1100),
  isLattice: fc.boolean(),
  // Frames that are lost nevertheless cost only time.
  isOrdered: fc.boolean(),
  keptBytes: fc.constantFrom(1 << 24, 0),
  schedule: fc.array(action, { minLength: 20, maxLength: 400 })
})

function perform(world: World, [kind, x, y]: Action): void {
  const n = world.hosts.length
  const links = [...world.links.values()]
  const link = links[x % Math.max(1, links.length)]
  const side = (y % 2) as 0 | 1
  switch (kind) {
    case 'input':
      world.input(x % n)
      return
    case 'tick':
      world.tick(x % n)
      return
    case 'checkpoint':
      world.checkpoint(x % n)
      return
    case 'crash':
      world.crash(x % n)
      return
    case 'connect':
      if (x % n !== y % n && !world.linked(x % n, y % n)) world.connect(x % n, y % n)
      return
    case 'exchange':
      if (link) exchange(world, link, side)
      return
    case 'catch up':
      if (link) catchUp(world, link, side)
      return
    case 'send':
      if (link) world.send(link, side)
      return
    case 'deliver':
      if (link) world.deliver(link, side, y >> 1, false)
      return
    case 'twice':
      if (link) world.deliver(link, side, y >> 1, true)
      return
    case 'drop':
      if (link) link.inFlight[side].shift()
      return
    case 'cut':
      if (link) world.cut(link, side)
      return
    default:
      kind satisfies never
  }
}

/** One end ticks and sends a frame, and the newest frame is delivered; older ones stay in flight. */
function exchange(world: World, link: Link, side: 0 | 1): void {
  world.tick(link.ends[side])
  world.send(link, side)
  const other = (1 - side) as 0 | 1
  world.deliver(link, other, link.inFlight[other].length - 1, false)
}

/** One end sends all its frames, and everything in flight is delivered in order. */
function catchUp(world: World, link: Link, side: 0 | 1): void {
  while (world.send(link, side)) {}
  const other = (1 - side) as 0 | 1
  while (link.inFlight[other].length > 0) world.deliver(link, other, 0, false)
}

/** Ends the faults: removes all links and connects the hosts as a tree. */
function heal(world: World): void {
  for (const link of [...world.links.values()]) for (const side of [0, 1] as const) world.cut(link, side)
  for (let h = 1; h < world.hosts.length; h++) world.connect(h, world.inputs.length % h)
  for (let r = 0; r < 40; r++) world.round()
}

/** Property 8: all nodes hold the same predictor, and every total contains all live gradients. @returns what does not hold yet */
function quiescence({ hosts }: World): string | undefined {
  const best = formatId(hosts[0].node.predictor.id)
  const live = liveGradients(hosts)
  for (const { origin, node } of hosts) {
    const id = formatId(node.predictor.id)
    if (id !== best) return `${origin} holds ${id}, ${hosts[0].origin} ${best}`
    if (node.gradients !== live) return `${origin} has ${node.gradients} of ${live} live gradients`
  }
  return undefined
}

function liveGradients(hosts: World['hosts']): number {
  return hosts.reduce((sum, { node }) => sum + node.ownGradients, 0)
}

describe('ADMB under generated faults', () => {
  it(`keeps its properties in ${RUNS} schedules and converges once faults stop`, function () {
    this.timeout(300_000)
    fc.assert(
      fc.property(scenario, ({ nodes, labels, batch, carry, schedule, ...options }) => {
        const world = new World({ origins: labels.slice(0, nodes), batch, carry, ...options })
        const ids = world.hosts.map(host => ({ incarnation: host.incarnation, id: host.node.predictor.id }))
        for (const step of schedule) {
          perform(world, step)
          world.hosts.forEach((host, h) => {
            // Property 2: within an incarnation, predictor ids only improve.
            const { id } = host.node.predictor
            if (ids[h].incarnation === host.incarnation) {
              assert.ok(compareIds(id, ids[h].id) >= 0, `${formatId(ids[h].id)} became ${formatId(id)}`)
            }
            ids[h] = { incarnation: host.incarnation, id }
          })
        }
        heal(world)
        assert.equal(quiescence(world), undefined)
        const best = world.hosts[0].node.predictor
        assert.ok(liveGradients(world.hosts) < batch, 'a full batch was not used')
        // Property 10: lineage.
        const ancestry = world.ancestry(best)
        assert.equal(ancestry.length, best.id.updates)
        let replayed = world.start
        const mean = new Float64Array(best.average[0].length)
        for (const { header, batch } of ancestry) {
          replayed = nextPredictor(replayed, batch, header.id, world.recipe)
          replayed.parameters[0].forEach((weight, i) => {
            mean[i] += weight / ancestry.length
          })
        }
        assert.equal(replayed.id.digest, best.id.digest)
        if (ancestry.length > 0) assert.ok(best.average[0].every((weight, i) => Math.abs(weight - mean[i]) < 1e-4))
        assert.equal(
          total(best.parameters[0]),
          ancestry.reduce((sum, logged) => sum + logged.batch.count, 0)
        )
      }),
      { numRuns: RUNS }
    )
  })

  it('on a static tree, never decreases the count held for an edge and predictor, and converges within the sessions', function () {
    this.timeout(300_000)
    const rewiring: readonly Kind[] = ['connect', 'cut', 'crash']
    fc.assert(
      fc.property(scenario, ({ nodes, labels, batch, carry, schedule, ...options }) => {
        const world = new World({ origins: labels.slice(0, nodes), batch, carry, ...options })
        for (let h = 1; h < nodes; h++) world.connect(h, (h * labels[0].charCodeAt(0)) % h)
        const counts = new Map<string, number>()
        for (const step of schedule) {
          if (rewiring.includes(step[0])) continue
          perform(world, step)
          world.hosts.forEach(({ node, origin }) => {
            for (const { number } of world.links.values()) {
              const key = `${origin} ${number} ${formatId(node.predictor.id)}`
              const count = node.inspect.neighbourSum(number)?.count ?? 0
              assert.ok(count >= (counts.get(key) ?? 0), `${key}: ${counts.get(key)} became ${count}`)
              counts.set(key, count)
            }
          })
        }
        // Everything on its way is lost.
        for (const { inFlight } of world.links.values()) for (const frames of inFlight) frames.length = 0
        for (let r = 0; r < PATIENCE && quiescence(world) !== undefined; r++) world.round()
        assert.equal(quiescence(world), undefined)
      }),
      { numRuns: Math.ceil(RUNS / 3) }
    )
  })

  it('uses every gradient with unlimited carry-over if no node crashes', function () {
    this.timeout(300_000)
    fc.assert(
      fc.property(scenario, ({ nodes, labels, batch, schedule, ...options }) => {
        const world = new World({ origins: labels.slice(0, nodes), batch, ...options, carry: 1e6 })
        for (const step of schedule) if (step[0] !== 'crash') perform(world, step)
        heal(world)
        const { node } = world.hosts[0]
        assert.equal(total(node.predictor.parameters[0]) + node.gradients, world.inputs.length)
      }),
      { numRuns: Math.ceil(RUNS / 3) }
    )
  })
})
