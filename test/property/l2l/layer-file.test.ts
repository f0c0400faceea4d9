/** Training with blocks in a layer file gives the bits of training in memory, and continues from its last commit. */
import { deepEqual, equal, match, throws } from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { openDevice } from '../../../src/device/index.js'
import { frozenOf, networkModel } from '../../../src/l2l/execution.js'
import { IoQueue, WRITE } from '../../../src/l2l/store/io-queue.js'
import { commitFile, layerFile, readCommit } from '../../../src/l2l/store/layer-file.js'
import { diskOptions } from '../../../src/l2l/store/place.js'
import { L2LEngine, type L2LEngineOptions } from '../../../src/l2l/training/engine.js'
import { diskNeeds } from '../../../src/l2l/training/param-server.js'
import { DivergenceError, type RuleSpec, type Trained } from '../../../src/learning/index.js'
import { parseModel } from '../../../src/nn/spec/model-spec.js'
import type { NetworkSpec, TuningSpec } from '../../../src/nn/spec/network-spec.js'
import { denseModel, randomRows } from '../../support/l2l/dense-model.js'
import { BACKENDS, useBackend } from '../../support/l2l/layers.js'
import { WHOLE_SCHEDULES } from '../../support/layer-plans.js'
import { share } from '../../support/runs.js'

const rules: readonly RuleSpec[] = [
  { name: 'momentum' },
  { name: 'adam' },
  { name: 'lamb' },
  { name: 'adamw', decay: 0.3, layerClip: 0.05, warmup: 2, schedule: 'linear', total: 9 },
  { name: 'adam', bits: 8 },
  { name: 'lars', bits: 8 },
  { name: 'adamw', decay: 0.3 }
]

const cases = fc.record({
  widths: fc.array(fc.integer({ min: 1, max: 80 }), { minLength: 1, maxLength: 6 }),
  rule: fc.constantFrom(...rules),
  averaging: fc.constantFrom({ name: 'tail' } as const, { name: 'none' } as const),
  predictWith: fc.constantFrom('average' as const, 'current' as const),
  schedule: fc.constantFrom(...WHOLE_SCHEDULES),
  serverThreads: fc.integer({ min: 0, max: 2 }),
  batch: fc.integer({ min: 1, max: 9 }),
  rows: fc.integer({ min: 1, max: 60 }),
  /** Memory above the least. */
  spare: fc.double({ min: 0, max: 1, noNaN: true })
})
type Case = typeof cases extends fc.Arbitrary<infer T> ? T : never

const tokens = { kind: 'tokens', shape: [6], vocabulary: 11, padding: 0, separator: 1 } as const
const wide = { width: 32, heads: 2, layers: 3 }
const networkOf = (model: object, tuning?: TuningSpec): NetworkSpec => ({
  layers: parseModel({ ...wide, ...model }, 'test'),
  sample: tokens,
  target: { kind: 'next-token' },
  tuning
})
const networks = [
  networkOf({ model: 'gpt', grow: 3, dropout: 0.1 }),
  networkOf({ model: 'llama', keyHeads: 1, tied: true }),
  networkOf({ model: 'gpt2' }, { lora: { rank: 2, alpha: 4, layers: 'all' } }),
  networkOf({ model: 'gpt2' }, { freeze: ['embeddings', 'layers:0'] })
]

const copies = ({ parameters, average, state, updates }: Trained) =>
  [[...parameters], [...average], [...state], updates] as const

describe('a layer file', () => {
  let folder: string
  before(() => openDevice('cpu'))
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'admb-test-'))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  function optionsOf({ widths, schedule, rows: _, spare: __, ...given }: Case): L2LEngineOptions {
    const microbatch = schedule === 'baseline' ? undefined : 3
    return { ...given, model: denseModel(5, widths, 3), schedule, microbatch }
  }

  function engineOn(given: Case, at: string, isContinued = false): L2LEngine {
    const options = optionsOf(given)
    const { least, most } = diskNeeds({ ...options, threads: given.serverThreads })
    const memory = least + Math.floor(given.spare * (most - least))
    const commit = isContinued ? readCommit(at) : undefined
    const engine = new L2LEngine({ ...options, disk: { folder: at, memory, commit } })
    if (commit) engine.resume({ updates: commit.content } as Trained)
    return engine
  }

  it('gives the same bits as memory, for all schedules and rules', () => {
    let runs = 0
    fc.assert(
      fc.property(cases, given => {
        const options = optionsOf(given)
        const examples = randomRows(options.model, given.rows)
        const inMemory = new L2LEngine(options)
        const onDisk = engineOn(given, join(folder, String(runs++)))
        for (const engine of [inMemory, onDisk]) engine.learn(examples)
        deepEqual(copies(onDisk.finish()), copies(inMemory.finish()))
        deepEqual(onDisk.progress.loss, inMemory.progress.loss)
      }),
      { numRuns: share(24) }
    )
  })

  it('makes room when writes end between two looks at them', () => {
    const { isDone, post } = IoQueue.prototype
    const rule = { name: 'lars', bits: 8 } as const
    const rest = { averaging: { name: 'none' }, predictWith: 'average', schedule: 'l2l', serverThreads: 1 } as const
    const given = { ...rest, widths: [80, 4, 3], rule, batch: 2, rows: 55, spare: 0 }
    // Each write is running at its first looks, and done afterwards.
    for (const looks of [1, 2, 3, 4]) {
      const left = new WeakMap<IoQueue, Map<number, number>>()
      IoQueue.prototype.post = function (command) {
        const ticket = post.call(this, command)
        if (command.kind === WRITE) left.set(this, (left.get(this) ?? new Map()).set(ticket, looks))
        return ticket
      }
      IoQueue.prototype.isDone = function (ticket) {
        this.drain()
        const running = left.get(this)?.get(ticket) ?? 0
        left.get(this)?.set(ticket, running - 1)
        return running <= 0 && isDone.call(this, ticket)
      }
      try {
        const engine = engineOn(given, join(folder, String(looks)))
        engine.learn(randomRows(optionsOf(given).model, given.rows))
        equal(engine.finish().updates, 28)
      } finally {
        Object.assign(IoQueue.prototype, { isDone, post })
      }
    }
  })

  it('continues from its last commit, whatever was written after it', () => {
    let runs = 0
    fc.assert(
      fc.property(cases, fc.nat(60), fc.nat(60), (given, committed, abandoned) => {
        const at = join(folder, String(runs++))
        const { batch } = given
        const options = optionsOf(given)
        const rows = randomRows(options.model, 9 * batch)
        const part = (from: number, to: number) => ({
          ...rows,
          size: batch * (to - from),
          labels: rows.labels.subarray(batch * from),
          offsets: rows.offsets.subarray(batch * from)
        })
        const [first, second] = [committed % 9, abandoned % 9]
        const lost = engineOn(given, at)
        lost.learn(part(0, first))
        lost.commit(first)
        lost.learn(part(first, Math.max(first, second)))
        // Writes everything, and commits nothing.
        lost.snapshot()
        const continued = engineOn(given, at, true)
        continued.learn(part(first, 9))
        const inMemory = new L2LEngine(options)
        inMemory.learn(rows)
        deepEqual(copies(continued.finish()), copies(inMemory.finish()))
        continued.close(9)
        equal(readCommit(at)?.content, 9)
      }),
      { numRuns: share(16) }
    )
    // Each commit waits for the disk.
  }).timeout(200_000)

  for (const backend of BACKENDS) {
    it(`gives the same bits for tied, frozen and added layers on ${backend}`, async () => {
      await useBackend(backend)
      try {
        let runs = 0
        fc.assert(
          fc.property(fc.constantFrom(...networks), fc.constantFrom(...WHOLE_SCHEDULES.slice(1)), (spec, schedule) => {
            const model = networkModel(spec)
            const averaging = { name: 'tail' } as const
            const server = { model, rule: { name: 'adam' }, averaging, threads: 1 } as const
            const options = {
              ...server,
              frozen: frozenOf(spec, model, undefined),
              batch: 4,
              schedule,
              serverThreads: 1
            }
            const disk = { folder: join(folder, `${backend}${runs++}`), memory: diskNeeds(server).least }
            const [inMemory, onDisk] = [undefined, disk].map(place => {
              const engine = new L2LEngine({ ...options, microbatch: 2, predictWith: 'average', disk: place })
              engine.learn(randomRows(model, 40))
              return copies(engine.finish())
            })
            deepEqual(onDisk, inMemory)
          }),
          { numRuns: share(16) }
        )
      } finally {
        await useBackend('cpu')
      }
    })
  }

  it('refuses damaged and truncated files in one line', () => {
    const given = {
      rule: { name: 'adam' },
      averaging: { name: 'tail' },
      predictWith: 'current',
      schedule: 'l2l'
    } as const
    const sizes = { widths: [40, 40], serverThreads: 1, batch: 4, rows: 8, spare: 0 }
    let runs = 0
    const damaged = (damage: (at: string) => void, message: RegExp) => {
      const at = join(folder, String(runs++))
      const engine = engineOn({ ...given, ...sizes }, at)
      engine.learn(randomRows(denseModel(5, sizes.widths, 3), 8))
      engine.finish()
      engine.close(2)
      damage(at)
      throws(
        () => {
          const continued = engineOn({ ...given, ...sizes }, at, true)
          continued.learn(randomRows(denseModel(5, sizes.widths, 3), 8))
        },
        (error: Error & { code: string }) => {
          match(error.message, message)
          equal(error.message.includes('\n'), false)
          return error.code === 'ERR_LAYERS_DAMAGED'
        }
      )
    }
    damaged(at => truncateSync(layerFile(at), 4096), /layers\.bin has 4096 bytes instead of \d+/)
    damaged(at => rmSync(layerFile(at)), /layers\.bin has no bytes/)
    damaged(at => {
      const bytes = readFileSync(layerFile(at))
      for (let i = 0; i < bytes.length; i += 64) bytes[i] ^= 1
      writeFileSync(layerFile(at), bytes)
    }, /array \d of block \d does not match its checksum/)
    damaged(at => writeFileSync(commitFile(at), readFileSync(commitFile(at), 'utf8').replace('2', '3')), /commit\.json/)
    damaged(at => truncateSync(commitFile(at), 30), /commit\.json does not match its checksum/)
    damaged(at => {
      const engine = engineOn({ ...given, ...sizes, widths: [40, 41] }, at)
      engine.finish()
      engine.close(0)
    }, /it belongs to another model/)
    damaged(at => writeFileSync(commitFile(at), ''), /commit\.json does not match its checksum/)
  })

  it('is not written if weights are not finite', () => {
    const at = join(folder, 'infinite')
    const model = denseModel(5, [4], 3)
    const rule = { name: 'momentum', step: 3e38 } as const
    const disk = { folder: at, memory: 2 ** 20 }
    const engine = new L2LEngine({ model, rule, averaging: { name: 'none' }, batch: 1, predictWith: 'current', disk })
    engine.commit(0)
    // Waits for it.
    engine.snapshot()
    throws(() => {
      for (let step = 0; step < 50; step++) engine.learn(randomRows(model, 1))
      engine.finish()
    }, DivergenceError)
    equal(readCommit(at)?.content, 0)
  })

  it('needs memory for its largest layer', () => {
    const given = {
      rule: { name: 'adam' },
      averaging: { name: 'tail' },
      model: denseModel(5, [40, 40, 40], 3)
    } as const
    const { least, most, file } = diskNeeds({ ...given, threads: 0 })
    equal(most < file, true)
    throws(
      () => diskOptions({ ...given, threads: 0 }, { hostMemory: least - 1 }),
      /the model, whose largest layer needs/
    )
    throws(() => diskOptions({ ...given, threads: 0 }, { workers: 2 }), /remove --workers/)
  })
})
