import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LearningSpec } from '../../../src/peer/index.js'
import { blocks } from '../../support/documents.js'
import { PeerServer, SPEC } from '../../support/http-server.js'
import { hasPython, runPython } from '../../support/python.js'

const COLUMNS = [
  { name: 'age', kind: 'number', mean: 40, deviation: 12 },
  { name: 'note', kind: 'ignored' },
  { name: 'income', kind: 'number', missing: true },
  { name: 'city', kind: 'category' }
] as const
const ROWS = [{ age: 31, income: 2.5 }, { age: 900, income: -1 }, { age: 58 }]

/** The constant, two numbers, an indicator, and hashed categories. */
function specOf(scale: 'none' | 'standard'): LearningSpec {
  const features = { constant: true, scale, columns: COLUMNS, hashBits: 3, classNames: ['no', 'yes'] }
  return { ...SPEC, dimension: 1 + 2 + 1 + 8, features } as LearningSpec
}

describe('a downloaded predictor', function () {
  this.timeout(60_000)
  let folder: string
  before(async function () {
    if (!hasPython('numpy')) this.skip()
    folder = await mkdtemp(join(tmpdir(), 'admb-numpy-'))
  })
  after(() => folder && rm(folder, { recursive: true }))

  for (const scale of ['none', 'standard'] as const) {
    it(`predicts the same in NumPy as over HTTP (scale ${scale})`, async () => {
      const served = await PeerServer.start({}, { spec: specOf(scale) })
      try {
        const learned = Array.from({ length: 40 }, (_, i) => ({
          age: 20 + (i % 50),
          ...(i % 5 > 0 && { income: (i % 7) - 3 }),
          label: i % 3 === 0 ? 'yes' : 'no'
        }))
        assert.equal((await served.post('/learn', JSON.stringify(learned))).status, 200)
        const rows = ROWS
        const answer = await served.post('/predict', JSON.stringify(rows))
        const { predictions } = (await answer.json()) as { predictions: { scores: number[] }[] }
        const file = join(folder, 'predictor.safetensors')
        await writeFile(file, Buffer.from(await (await fetch(`${served.url}/predictor`)).arrayBuffer()))
        const program = `${blocks('numpy predict', 'docs/reference/http.md', 'python')[0]}
import sys
print(json.dumps([predict(sys.argv[1], row) for row in json.loads(sys.argv[2])]))`
        const stdout = await runPython(program, file, JSON.stringify(rows))
        const computed = JSON.parse(stdout) as { no: number; yes: number }[]
        for (const [i, { no, yes }] of computed.entries()) {
          const [expectedNo, expectedYes] = predictions[i].scores
          assert.ok(
            Math.abs(no - expectedNo) < 1e-5 && Math.abs(yes - expectedYes) < 1e-5,
            `${stdout} ${JSON.stringify(predictions)}`
          )
        }
      } finally {
        await served.stop()
      }
    })
  }
})
