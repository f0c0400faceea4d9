/**
 * The audit agrees with an exact learner, whose parameters count how often each input was used, over random crashes, restarts and
 * reconnections. Crashed nodes either continue as their journal says, or learn an input of it again in any case.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { type AuditedJournal, auditJournal, joinLineages } from '../../../src/admb/core/audit.js'
import type { Ranges } from '../../../src/admb/core/journal.js'
import { AdmbNode, compareIds, type JournalRecord } from '../../../src/admb/index.js'
import { ContributorTable } from '../../../src/admb/state/coverage.js'
import { decodeLineage } from '../../../src/admb/wire/saved.js'
import { addToyGradient, toy, toyLayout, toyStart } from '../../support/toy.js'

const INPUTS = 200
const RUNS = Number(process.env.ADMB_RUNS ?? 300)
const ORIGINS = ['a', 'b', 'c']
const start = toyStart(INPUTS)

type Action = readonly [kind: 'input' | 'exchange' | 'tick' | 'crash' | 'cut' | 'connect', x: number, y: number]

const action: fc.Arbitrary<Action> = fc.tuple(
  fc.oneof(
    { weight: 10, arbitrary: fc.constant('input' as const) },
    { weight: 10, arbitrary: fc.constant('exchange' as const) },
    { weight: 4, arbitrary: fc.constant('tick' as const) },
    { weight: 2, arbitrary: fc.constant('crash' as const) },
    { weight: 1, arbitrary: fc.constant('cut' as const) },
    { weight: 2, arbitrary: fc.constant('connect' as const) }
  ),
  fc.nat(1000),
  fc.nat(1000)
)

interface Host {
  readonly origin: string
  node: AdmbNode
  incarnation: number
  /** Never deleted. */
  readonly journal: JournalRecord[]
  liveFrom: number
  saved: Uint8Array
}

class Hosts {
  readonly hosts: Host[]
  readonly #carry: number
  readonly #remembers: boolean
  #inputs = 0

  constructor(carry: number, remembers: boolean) {
    this.#carry = carry
    this.#remembers = remembers
    this.hosts = ORIGINS.map(origin => {
      const node = this.#create(origin, 1)
      return { origin, node, incarnation: 1, journal: [], liveFrom: 1, saved: node.storage.save() }
    })
  }

  #create(self: string, incarnation: number): AdmbNode {
    const layout = toyLayout(INPUTS)
    return new AdmbNode({
      ...toy,
      self,
      incarnation,
      layout,
      initial: start,
      batch: 5,
      carry: this.#carry,
      journal: true
    })
  }

  perform([kind, x, y]: Action): void {
    const host = this.hosts[x % 3]
    const other = this.hosts[(x + 1 + (y % 2)) % 3]
    if (kind === 'input') this.#input(host)
    else if (kind === 'tick') {
      host.node.tick()
      this.#relearn(host)
    } else if (kind === 'exchange') this.#exchange(host, other)
    else if (kind === 'crash') this.#crash(host, y % 2 === 0)
    else if (kind === 'cut') this.#cut(host, other)
    else this.#connect(host, other)
  }

  #input(host: Host): void {
    if (this.#inputs >= INPUTS) return
    this.#learn(host, this.#inputs++)
  }

  #learn({ node }: Host, input: number): void {
    addToyGradient(node.accumulator, input)
    node.added(1, input)
    node.takeEffects()
  }

  /** The journal is durable before frames and checkpoints. */
  #record(host: Host): void {
    host.node.closeSegment()
    for (const record of host.node.takeJournal()) {
      if (record.kind === 'dropped') host.liveFrom = record.before
      else host.journal.push(record)
    }
  }

  #relearn(host: Host): void {
    const { node } = host
    node.closeSegment()
    for (let range = node.relearnable; range; range = node.relearnable) {
      this.#learn(host, range[0])
      node.closeSegment()
    }
  }

  #edge(a: Host, b: Host): number {
    const [x, y] = [this.hosts.indexOf(a), this.hosts.indexOf(b)]
    return Math.min(x, y) * 3 + Math.max(x, y)
  }

  #connect(a: Host, b: Host): void {
    this.#cut(a, b)
    a.node.connect(this.#edge(a, b), 1, b.origin)
    b.node.connect(this.#edge(a, b), 1, a.origin)
  }

  #cut(a: Host, b: Host): void {
    for (const { node } of [a, b]) node.disconnect(this.#edge(a, b))
  }

  #exchange(from: Host, to: Host): void {
    from.node.tick()
    for (let frame = this.#frame(from, to); frame; frame = this.#frame(from, to))
      to.node.receive(this.#edge(from, to), frame)
    to.node.takeEffects()
  }

  #frame(from: Host, to: Host): Uint8Array | undefined {
    const frame = from.node.frame(this.#edge(from, to))
    this.#record(from)
    return frame
  }

  #crash(host: Host, hasCheckpoint: boolean): void {
    if (hasCheckpoint) {
      this.#record(host)
      host.saved = host.node.storage.save()
    }
    for (const other of this.hosts) if (other !== host) this.#cut(host, other)
    host.node = this.#create(host.origin, ++host.incarnation)
    const live = host.journal.filter(
      record => (record.kind === 'epoch' ? record.number : epochOf(record)) >= host.liveFrom
    )
    host.node.recover(live)
    host.node.restore(host.saved)
    if (this.#remembers) return
    const newest = live.findLast(record => record.kind === 'segment')
    host.node.closeSegment()
    if (newest?.kind === 'segment') this.#learn(host, newest.inputs[0])
    host.node.closeSegment()
  }

  /** Uses by input, according to the audit and to the parameters; both of the best predictor. */
  audit(): { readonly audited: number[]; readonly counted: number[]; readonly journals: AuditedJournal[] } {
    const table = new ContributorTable()
    for (const host of this.hosts) this.#record(host)
    const heads = this.hosts.map(({ node }) => decodeLineage(node.storage.saveBlocks().head, table))
    const lineage = joinLineages(heads)
    assert.ok(lineage)
    const best = this.hosts.reduce((a, b) => (compareIds(a.node.predictor.id, b.node.predictor.id) > 0 ? a : b))
    const journals = this.hosts.map(({ origin, journal, liveFrom }) =>
      auditJournal(origin, journal, liveFrom, lineage, table)
    )
    const audited = new Array<number>(INPUTS).fill(0)
    for (const { inputs, uses } of journals.flatMap(({ segments }) => segments)) {
      for (const input of numbersIn(inputs)) audited[input] += uses.length
    }
    return { audited, counted: [...best.node.predictor.parameters[0]], journals }
  }
}

function numbersIn(inputs: Ranges): number[] {
  const numbers: number[] = []
  for (let i = 0; i < inputs.length; i += 2)
    for (let input = inputs[i]; input < inputs[i + 1]; input++) numbers.push(input)
  return numbers
}

function epochOf(record: JournalRecord): number {
  return record.kind === 'segment' ? record.epoch : 0
}

describe('the audit', () => {
  it('finds the uses that the parameters count, none of them twice', () => {
    let used = 0
    fc.assert(
      fc.property(
        fc.constantFrom(0, 3, 1000),
        fc.array(action, { minLength: 50, maxLength: 400 }),
        (carry, schedule) => {
          const hosts = new Hosts(carry, true)
          for (const one of schedule) hosts.perform(one)
          const { audited, counted, journals } = hosts.audit()
          assert.deepEqual(audited, counted)
          assert.ok(audited.every(uses => uses <= 1))
          for (const { unrecorded, isWhole, segments } of journals) {
            assert.deepEqual(unrecorded, [])
            assert.ok(isWhole)
            // With unlimited carry-over nothing is lost. An input that was learned again has several segments.
            if (carry === 1000) {
              const kept = segments.filter(({ state }) => state !== 'unused' && state !== 'unknown')
              const isKept = new Set(kept.flatMap(({ inputs }) => numbersIn(inputs)))
              const lost = segments.filter(({ inputs }) => numbersIn(inputs).some(input => !isKept.has(input)))
              assert.deepEqual(lost, [])
            }
            used += segments.filter(({ state }) => state === 'used').length
          }
        }
      ),
      { numRuns: RUNS }
    )
    assert.ok(used > RUNS)
  })

  it('finds inputs that a node learned again although they had been used', () => {
    let twice = 0
    fc.assert(
      fc.property(fc.array(action, { minLength: 100, maxLength: 400 }), schedule => {
        const hosts = new Hosts(1000, false)
        for (const one of schedule) hosts.perform(one)
        const { audited, counted } = hosts.audit()
        assert.deepEqual(audited, counted)
        twice += audited.filter(uses => uses > 1).length
      }),
      { numRuns: RUNS }
    )
    assert.ok(twice > RUNS)
  })
})
