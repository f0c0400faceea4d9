/** Numbers are scaled by constants of the schema, which a peer measures once and keeps, and which its predictor needs. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { readPredictor } from '../../../src/cli/training/stored.js'
import { Store } from '../../../src/storage/index.js'
import { parseSpec } from '../../../src/task/spec-text.js'
import { LEARNERS, MAIN, PeerProcesses, until } from '../../support/peer-processes.js'

const ROWS = 600
const CLASSES = ['low', 'high']

function csv(): string {
  const lines = ['height,weight,label']
  for (let i = 0; i < ROWS; i++) {
    const height = 170 + 30 * Math.sin(i)
    lines.push(`${height.toFixed(3)},${(60000 + 7000 * Math.cos(1.7 * i)).toFixed(1)},${CLASSES[height > 170 ? 1 : 0]}`)
  }
  return `${lines.join('\n')}\n`
}

describe('a peer with scaling', function () {
  this.timeout(60_000)
  const processes = new PeerProcesses()
  afterEach(() => processes.stop())

  const stored = async (state: string) => {
    const store = await Store.open(state)
    const [checkpoint, model] = [await store.checkpoint(), await store.model()]
    assert.ok(checkpoint && model)
    const { predictor } = await readPredictor(store, state, parseSpec(model), checkpoint)
    await store.close()
    // The id has a digest of the content, and differs in the run.
    const { updates, digest } = predictor.id
    return { updates, digest, columns: parseSpec(model).features.columns }
  }

  for (const learner of LEARNERS)
    it(`with ${learner} keeps its scaling, bit for bit, with and without restarts; eval, predict and HTTP use it`, async () => {
      const dir = await processes.scratch()
      const data = join(dir, 'people.csv')
      await writeFile(data, csv())
      const args = ['--data', data, '--scale', 'standard', '--class-names', CLASSES.join(','), '--batch', '1']
      args.push(...(await processes.modelOptions(learner)))
      const [whole, halting] = [join(dir, 'whole'), join(dir, 'halting')]

      const once = await processes.start(...args, '--dir', whole).ready()
      await until('all rows are learned', () => once.latest.ended)
      const input = { features: [180.5, 61000] }
      const body = JSON.stringify(input)
      const headers = { 'content-type': 'application/json' }
      const response = await fetch(`${once.latest.http}/predict`, { method: 'POST', body, headers })
      const { predictions } = (await response.json()) as { predictions: { label: string; scores: number[] }[] }
      assert.equal(await once.stop(), 0, once.stderr)

      let ended = false
      while (!ended) {
        const peer = await processes.start(...args, '--dir', halting, '--rate', '400').ready()
        const before = peer.latest.inputs
        const enough = before + ROWS / 4
        await until('the peer continues', () => peer.latest.inputs >= enough || peer.latest.ended)
        assert.equal(await peer.stop(), 0, peer.stderr)
        ended = peer.latest.ended
      }
      const [a, b] = [await stored(whole), await stored(halting)]
      assert.deepEqual(b.columns, a.columns)
      assert.ok(a.columns?.every(({ mean, deviation = 0 }) => mean !== undefined && deviation > 1))
      const run = (...words: string[]) => promisify(execFile)(process.execPath, [MAIN, ...words])

      const inputs = join(dir, 'new.jsonl')
      await writeFile(inputs, `${body}\n`)
      const predicted = await run('predict', '--dir', whole, '--data', inputs, '--json')
      assert.deepEqual(JSON.parse(predicted.stdout.split('\n')[0]), predictions[0])
      const evaluated = await run('eval', '--dir', whole, '--data', data, '--json')
      const { accuracy, inputs: count } = JSON.parse(evaluated.stdout)
      assert.equal(count, ROWS)
      assert.ok(accuracy > 0.9, `accuracy ${accuracy}`)
      assert.deepEqual(await stored(whole), a, 'reading does not change the state')
    })
})
