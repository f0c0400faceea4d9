/** The driver of a node: what leaves it, in which order, and how it continues after a crash at any point. */
import assert from 'node:assert/strict'
import { AdmbNode, Driver, JournalQueue, type JournalRecord } from '../../../src/admb/index.js'
import { addToyGradient, toy, toyLayout, toyStart } from '../../support/toy.js'

const INPUTS = 60
/** Inputs of the neighbour have numbers from here on. */
const OTHERS = 40

function nodeOf(self: string, incarnation: number, batch: number): AdmbNode {
  return new AdmbNode({
    ...toy,
    self,
    incarnation,
    layout: toyLayout(INPUTS),
    initial: toyStart(INPUTS),
    batch,
    carry: 100,
    journal: self === 'a',
    repeats: self === 'a'
  })
}

function learn(node: AdmbNode, input: number): void {
  addToyGradient(node.accumulator, input)
  node.added(1, input)
}

/** What is on the disk of a node. A checkpoint replaces the one before. */
interface Disk {
  records: JournalRecord[]
  /** Inputs in the segments of the records. */
  inputs: number
  checkpoint: Uint8Array | undefined
}

interface Write {
  readonly records: readonly JournalRecord[]
  readonly inputs: number
}

/** A node whose disk writes when the test says so. Frames are on their way to its neighbour when they have left. */
class DrivenPeer {
  readonly node: AdmbNode
  readonly driver: Driver
  readonly queue: JournalQueue<Write>
  readonly sent: Uint8Array[] = []
  readonly disk: Disk
  #writing: Write | undefined
  #isBusy = false
  now = 0
  /** Number of inputs so far. */
  inputs: number
  /** Frames that were composed. */
  composed = 0

  constructor(incarnation: number, batch: number, disk: Disk) {
    this.disk = disk
    this.inputs = disk.inputs
    this.node = nodeOf('a', incarnation, batch)
    this.queue = new JournalQueue<Write>(
      write => (this.#writing = write),
      (first, second) => ({ records: [...first.records, ...second.records], inputs: second.inputs })
    )
    const host = {
      canSend: () => !this.#isBusy,
      send: (_edge: number, bytes: Uint8Array) => {
        this.composed++
        this.#isBusy = true
        this.queue.whenDurable(() => {
          this.sent.push(bytes)
          this.#isBusy = false
        })
      },
      announce: () => undefined,
      on: () => undefined
    }
    const append = (records: readonly JournalRecord[]) => this.queue.append({ records, inputs: this.inputs })
    this.driver = new Driver(this.node, host, { period: 1, now: 0, journal: { isStored: true, append } })
    const { checkpoint } = disk
    this.driver.restore(disk.records, () => checkpoint && this.node.restore(checkpoint))
  }

  learn(): void {
    learn(this.node, this.inputs++)
    this.driver.takeEffects()
  }

  tick(): void {
    this.driver.tick(++this.now, false)
    this.driver.flush()
  }

  /** The write in progress ends. */
  write(): void {
    if (this.#writing === undefined) return
    const { records, inputs } = this.#writing
    this.#writing = undefined
    this.disk.records.push(...records.filter(({ kind }) => kind !== 'dropped'))
    this.disk.inputs = inputs
    this.queue.written()
    this.driver.flush()
  }

  checkpoint(): void {
    this.driver.record(true)
    const bytes = this.node.storage.save()
    this.queue.whenDurable(() => (this.disk.checkpoint = bytes))
  }

  receive(bytes: Uint8Array): void {
    this.node.receive(1, bytes)
    this.driver.flush()
  }
}

describe('the queue of the journal', () => {
  /** Writes in progress, to be ended by the test. */
  const create = () => {
    const writes: number[][] = []
    const queue = new JournalQueue<number[]>(
      entry => writes.push(entry),
      (a, b) => [...a, ...b]
    )
    return { writes, queue }
  }

  it('holds back what follows from a record until the record is durable, and no longer', () => {
    const { writes, queue } = create()
    const log: string[] = []
    queue.whenDurable(() => log.push('before all records'))
    queue.append([1])
    queue.whenDurable(() => log.push('after 1'))
    queue.append([2])
    queue.append([3])
    queue.whenDurable(() => log.push('after 3'))
    assert.deepEqual([writes, log], [[[1]], ['before all records']])
    queue.written()
    assert.deepEqual(
      [writes, log],
      [
        [[1], [2, 3]],
        ['before all records', 'after 1']
      ]
    )
    assert.equal(queue.isDurable, false)
    queue.written()
    assert.deepEqual(log, ['before all records', 'after 1', 'after 3'])
    assert.equal(queue.isDurable, true)
  })

  it('writes at once what an action appends', () => {
    const { writes, queue } = create()
    queue.append([1])
    queue.whenDurable(() => queue.append([2]))
    queue.written()
    assert.deepEqual(writes, [[1], [2]])
  })

  it('passes a failure to all that wait, and to all that come later', () => {
    const { writes, queue } = create()
    const errors: (string | undefined)[] = []
    const log = (error?: Error) => void errors.push(error?.message)
    queue.append([1])
    queue.whenDurable(log)
    queue.append([2])
    queue.whenDurable(log)
    queue.written(new Error('full'))
    queue.append([3])
    queue.whenDurable(log)
    assert.deepEqual([writes, errors], [[[1]], ['full', 'full', 'full']])
    assert.equal(queue.isDurable, false)
  })
})

describe('the driver of a node', () => {
  const empty = (): Disk => ({ records: [], inputs: 0, checkpoint: undefined })

  it('lets a frame leave when the records of its segments are durable', () => {
    const peer = new DrivenPeer(1, 100, empty())
    const neighbour = nodeOf('b', 1, 100)
    peer.driver.connect(1, 1, 'b')
    neighbour.connect(1, 1, 'a')
    peer.driver.flush()
    peer.write()
    for (const bytes of peer.sent.splice(0)) neighbour.receive(1, bytes)
    peer.receive(neighbour.frame(1) as Uint8Array)
    while (peer.node.hasFrame(1)) peer.write()
    peer.sent.length = 0
    const before = peer.composed
    peer.learn()
    assert.equal(peer.composed, before, 'nothing leaves while inputs are learned')
    peer.tick()
    assert.deepEqual([peer.composed, peer.sent.length], [before + 1, 0])
    peer.learn()
    peer.tick()
    assert.equal(peer.composed, before + 1, 'the edge is busy')
    peer.write()
    assert.equal(peer.sent.length, 1)
    neighbour.receive(1, peer.sent[0])
    assert.equal(neighbour.gradients, 1)
    assert.equal(peer.disk.inputs, 1)
  })

  it('puts all inputs into segments before a checkpoint, also without a neighbour', () => {
    const peer = new DrivenPeer(1, 100, empty())
    for (let i = 0; i < 3; i++) peer.learn()
    peer.checkpoint()
    assert.equal(peer.disk.checkpoint, undefined, 'the checkpoint waits for the journal')
    peer.write()
    assert.ok(peer.disk.checkpoint)
    assert.equal(peer.disk.inputs, 3)
    const segments = peer.disk.records.flatMap(record => (record.kind === 'segment' ? [record.inputs] : []))
    assert.deepEqual(segments, [[0, 3]])
  })

  it('takes the records of a journal that is not stored at each tick, so that they do not fill the memory', () => {
    const node = nodeOf('a', 1, 2)
    let taken = 0
    const host = { canSend: () => true, send: assert.fail, announce: assert.fail, on: () => undefined }
    const journal = { isStored: false, append: (records: readonly JournalRecord[]) => (taken += records.length) }
    const driver = new Driver(node, host, { period: 1, now: 0, journal })
    for (let i = 0; i < 10; i++) learn(node, i)
    driver.tick(1, false)
    driver.flush()
    assert.ok(taken >= 10, `${taken} records`)
    assert.deepEqual(node.takeJournal(), [])
  })

  it('with differential privacy, announces only what follows from recorded sums', () => {
    const log: string[] = []
    const node = {
      takeEffects: () => [{ kind: 'announced', edge: 1, bytes: new Uint8Array() }],
      takeJournal: () => [{ kind: 'dropped', before: 1 }],
      closeSegment: () => undefined
    }
    const host = { canSend: () => false, send: assert.fail, announce: () => log.push('announced'), on: () => undefined }
    for (const isPrivate of [false, true]) {
      const journal = { isStored: true, append: () => log.push('recorded') }
      const driver = new Driver(node as never, host, { period: 1, now: 0, journal, isPrivate })
      driver.takeEffects()
      if (isPrivate) driver.protect()
      assert.deepEqual(log.splice(0), isPrivate ? ['recorded', 'announced'] : ['announced'])
    }
  })

  /** Events of a node that learns, and of its disk, its lines and its neighbour, in the order of a run. */
  const EVENTS = [
    'learn',
    'learn',
    'tick',
    'deliver',
    'write',
    'deliver',
    'answer',
    'checkpoint',
    'learn',
    'write'
  ] as const
  const ROUNDS = 5

  class Run {
    peer: DrivenPeer
    readonly neighbour: AdmbNode
    readonly batch: number
    others = OTHERS
    incarnation = 1

    constructor(batch: number) {
      this.batch = batch
      this.peer = new DrivenPeer(1, batch, empty())
      this.neighbour = nodeOf('b', 1, batch)
      this.connect()
    }

    connect(): void {
      const { peer, neighbour, incarnation } = this
      peer.driver.connect(1, incarnation, 'b')
      neighbour.connect(1, incarnation, 'a')
      peer.driver.flush()
    }

    do(event: (typeof EVENTS)[number]): void {
      const { peer, neighbour } = this
      switch (event) {
        case 'learn':
          peer.learn()
          break
        case 'tick':
          peer.tick()
          neighbour.tick()
          break
        case 'deliver':
          for (const bytes of peer.sent.splice(0)) neighbour.receive(1, bytes)
          neighbour.takeEffects()
          break
        case 'answer':
          if (this.others < INPUTS) learn(neighbour, this.others++)
          for (let bytes = neighbour.frame(1); bytes; bytes = neighbour.frame(1)) peer.receive(bytes)
          neighbour.takeEffects()
          break
        case 'checkpoint':
          peer.checkpoint()
          break
        default:
          peer.write()
      }
    }

    /** The node loses its memory. @param arrive whether frames that have left still arrive */
    crash(arrive: boolean): void {
      if (arrive) this.do('deliver')
      this.neighbour.disconnect(1)
      this.incarnation++
      const { inputs } = this.peer
      this.peer = new DrivenPeer(this.incarnation, this.batch, this.peer.disk)
      this.connect()
      while (this.peer.inputs < inputs) this.peer.learn()
    }

    /** Continues until all inputs are used. */
    finish(): void {
      const { peer, neighbour } = this
      for (let round = 0; round < 60; round++) {
        for (const event of ['tick', 'write', 'deliver', 'write'] as const) this.do(event)
        for (let bytes = neighbour.frame(1); bytes; bytes = neighbour.frame(1)) peer.receive(bytes)
        peer.driver.inOwnSegment(() => {
          const { relearnable } = peer.node
          if (relearnable) learn(peer.node, relearnable[0])
        })
        peer.driver.flush()
        if (round > 20 && round % 8 === 0) peer.node.useRemainder()
        if (round > 20 && round % 8 === 4) neighbour.useRemainder()
      }
    }
  }

  for (const batch of [2, 5, 12]) {
    for (const arrive of [true, false]) {
      it(`loses no input and counts none twice after a crash at any event (b = ${batch}, frames ${arrive ? 'arrive' : 'are lost'})`, () => {
        const script = Array.from({ length: ROUNDS }, () => EVENTS).flat()
        let relearned = 0
        for (let at = 0; at <= script.length; at++) {
          const run = new Run(batch)
          for (const event of script.slice(0, at)) run.do(event)
          run.crash(arrive)
          relearned += run.peer.node.waiting
          for (const event of script.slice(at)) run.do(event)
          run.finish()
          const { node, inputs } = run.peer
          assert.deepEqual(node.predictor.id, run.neighbour.predictor.id, `crash at ${at}`)
          const [uses] = node.predictor.parameters
          const learned = (i: number) => (i < OTHERS ? i < inputs : i < run.others)
          assert.deepEqual(
            [...uses],
            [...uses].map((_, i) => (learned(i) ? 1 : 0)),
            `crash at ${at}`
          )
        }
        assert.ok(relearned > 0, 'no crash has left inputs to learn again')
      })
    }
  }
})
