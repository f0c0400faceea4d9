/** Writing and reading the journal: which rows an input number refers to. */
import assert from 'node:assert/strict'
import type { Rows } from '../../../src/data/index.js'
import { InputLog, type InputPiece, restored } from '../../../src/peer/input-log.js'
import { JournalWriter } from '../../../src/peer/journal-writer.js'
import type { JournalAppend, StoredJournal } from '../../../src/storage/index.js'

const EMPTY: StoredJournal = { records: [], pending: [], tail: undefined }
const SUMS = { inputs: 0, loss: 0 }

/** Rows with the labels; those of a stream have positions. */
function rowsOf(labels: readonly number[], start?: number): Rows {
  const size = labels.length
  return {
    size,
    labels: Float32Array.from(labels),
    numeric: new Int32Array(size),
    offsets: Int32Array.from({ length: size + 1 }, (_, i) => i),
    indices: Int32Array.from(labels, (_, i) => i % 3),
    values: Float32Array.from(labels, label => label / 10),
    ...(start !== undefined && {
      positionAfter: count => ({ row: start + count, skip: 0, rows: start + count, pass: 0 })
    })
  }
}

function storedFrom(...appends: (JournalAppend | undefined)[]): StoredJournal {
  return {
    records: appends.flatMap(append => append?.records.map(([, text]) => text) ?? []),
    pending: appends.flatMap(append => append?.pending.map(([, text]) => text) ?? []),
    tail: undefined
  }
}

describe('the log of inputs', () => {
  const epoch = {
    kind: 'epoch',
    number: 1,
    id: { updates: 0, origin: '', incarnation: 0, nonce: 0, digest: '' }
  } as const
  const list = { incarnation: 1, nonce: 0, carried: [], open: [] }

  it('keeps the rows of a stream that does not give them again, although they have positions', () => {
    const log = new InputLog(EMPTY, 'queue')
    log.add({ ...rowsOf([1, 2, 3], 100), forwardOnly: true }, 0, 3)
    const segment = { kind: 'segment', number: 1, epoch: 1, inputs: [0, 3] } as const
    const later = new InputLog(storedFrom(log.take([{ ...epoch, ...list }, segment], SUMS)), 'queue')
    const found = later.find(1, 3)
    assert.equal(found?.place, undefined)
    assert.deepEqual([...restored(found as InputPiece).labels], [2, 3])
  })

  it('returns the positions of the rows of a stream', () => {
    const log = new InputLog(EMPTY, 'file')
    assert.equal(log.add(rowsOf([1, 2, 3, 4, 5], 100), 1, 4), 0)
    const segments = [
      { ...epoch, ...list },
      { kind: 'segment', number: 1, epoch: 1, inputs: [0, 3] },
      { kind: 'segment', number: 2, epoch: 1, inputs: [3, 4] }
    ] as const
    const later = new InputLog(storedFrom(log.take(segments, SUMS)), 'file')
    assert.equal(later.records.length, 3)
    const found = later.find(1, 3)
    assert.deepEqual([found?.first, found?.count, found?.skip, found?.place?.rows], [1, 2, 1, 101])
    assert.equal(later.find(3, 4)?.skip, 3)
    assert.equal(later.find(4, 5), undefined)
    assert.equal(later.add(rowsOf([6], 105), 0, 1), 4, 'numbers continue')
    assert.equal(new InputLog(storedFrom(log.take(segments, SUMS)), 'another').find(1, 3), undefined)
  })

  it('holds rows that cannot be read again, before and after they are in a segment', () => {
    const log = new InputLog(EMPTY, undefined)
    log.add(rowsOf([7, 8, 9]), 0, 3)
    const acknowledged = log.acknowledge()
    assert.equal(log.acknowledge(), undefined, 'once')
    const pending = new InputLog(storedFrom(acknowledged), undefined).pending
    assert.deepEqual(
      pending.map(piece => [...restored(piece).labels]),
      [[7, 8, 9]]
    )
    const records = [
      { ...epoch, ...list },
      { kind: 'segment', number: 1, epoch: 1, inputs: [0, 3] }
    ] as const
    const later = new InputLog(storedFrom(log.take(records, SUMS)), undefined)
    const piece = later.find(1, 3)
    assert.ok(piece)
    const rows = restored(piece)
    assert.deepEqual([...rows.labels], [8, 9])
    assert.deepEqual([...rows.values], [Math.fround(0.8), Math.fround(0.9)])
    assert.deepEqual([...rows.indices], [1, 2])
  })

  it('contains inputs once that several runs have learned again', () => {
    const log = new InputLog(EMPTY, 'file')
    log.add(rowsOf([1, 2, 3, 4], 100), 0, 4)
    const segment = { kind: 'segment', number: 1, epoch: 1, inputs: [0, 4] } as const
    const appends = [log.take([{ ...epoch, ...list }, segment], SUMS)]
    for (let number = 2; number < 6; number++) {
      const later = new InputLog(storedFrom(...appends), 'file')
      appends.push(later.take([{ ...segment, number, inputs: [0, 3], of: 1 }], SUMS))
    }
    const { pieces } = JSON.parse(appends[4].records[0][1])
    assert.deepEqual(
      pieces.map(({ first, count }: { first: number; count: number }) => [first, count]),
      [[0, 3]]
    )
  })

  it('continues the numbers of inputs whose records have been deleted', () => {
    const log = new InputLog(EMPTY, 'file')
    log.add(rowsOf([1, 2, 3], 0), 0, 3)
    const { tail } = log.take([], SUMS)
    const later = new InputLog({ ...EMPTY, tail: tail?.text }, 'file')
    assert.equal(later.add(rowsOf([4], 3), 0, 1), 3)
  })
})

describe('the writer of the journal', () => {
  const record = (segment: number): JournalAppend => ({ records: [[{ epoch: 1, segment }, '']], pending: [] })

  it('batches records that arrive during a write, in order, and reports when all are durable', async () => {
    const batches: number[][] = []
    const finish: (() => void)[] = []
    const store = {
      append: ({ records }: JournalAppend) => {
        batches.push(records.map(([{ segment }]) => segment))
        return new Promise<void>(resolve => finish.push(resolve))
      }
    }
    const writer = new JournalWriter(store, error => assert.fail(error))
    assert.equal(writer.durable, undefined)
    const log: string[] = []
    writer.write(record(1))
    writer.whenDurable(() => log.push('first'))
    writer.write(record(2))
    writer.write(record(3))
    writer.whenDurable(() => log.push('all'))
    const all = writer.durable
    assert.deepEqual(batches, [[1]])
    finish[0]()
    await new Promise(setImmediate)
    assert.deepEqual(batches, [[1], [2, 3]])
    assert.deepEqual(log, ['first'])
    finish[1]()
    await all
    assert.deepEqual(log, ['first', 'all'])
    assert.equal(writer.durable, undefined)
  })

  it('fails once for all records that are not durable, and lets nothing pass', async () => {
    const failures: Error[] = []
    const store = { append: () => Promise.reject(new Error('the disk is full')) }
    const writer = new JournalWriter(store, error => failures.push(error))
    writer.write(record(1))
    writer.whenDurable(() => assert.fail('the record is not durable'))
    await assert.rejects(writer.durable ?? Promise.resolve(), /the disk is full/)
    writer.write(record(2))
    writer.whenDurable(() => assert.fail('the record is not durable'))
    await assert.rejects(writer.durable ?? Promise.resolve(), /the disk is full/)
    assert.equal(failures.length, 1)
  })
})
