/** `admb export --format onnx`: raw rows in, the predictions of `admb predict` out; and the ONNX checker and onnxruntime. */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { admb } from '../../support/admb-command.js'
import { useBackend } from '../../support/l2l/layers.js'
import { onnxCases } from '../../support/onnx/cases.js'
import { evaluate, readOnnx } from '../../support/onnx/evaluate.js'
import { hasPython, runPython } from '../../support/python.js'
import { scratchFolder } from '../../support/scratch.js'

/** A large mean beside its deviation in numbers that float32 has, because that is what the graph takes, a column of small numbers, and one with missing values. */
const ROWS = Array.from({ length: 300 }, (_, i) => [
  100_000 + Math.round(96 * Math.sin(i)) / 32,
  0.01 * Math.cos(5 * i),
  i % 4 === 0 ? Number.NaN : i % 7
])
const CLASSES = ['no', 'yes', 'maybe']
const csv = (labelOf: (row: readonly number[], i: number) => string | number) =>
  `a,b,c,label\n${ROWS.map((row, i) => `${row.map(x => (Number.isNaN(x) ? '' : x.toFixed(5))).join(',')},${labelOf(row, i)}\n`).join('')}`

describe('export to ONNX', function () {
  this.timeout(120_000)
  const folder = scratchFolder()

  async function succeed(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await admb(args)
    assert.equal(code, 0, stderr)
    return stdout
  }

  for (const [model, labelOf] of [
    ['logistic', ([a]: readonly number[]) => CLASSES[Number(a > 100_001)]],
    ['softmax', ([a, b]: readonly number[]) => CLASSES[Number(a > 100_001) + Number(b > 0)]],
    ['linear', ([a, b]: readonly number[]) => (50 + a - 100_000 + 100 * b).toFixed(3)],
    ['mlp', ([a, b]: readonly number[]) => CLASSES[Number(a > 100_001) + Number(b > 0)]]
  ] as const) {
    it(`takes raw rows of a table: ${model}`, async () => {
      const [data, dir, out] = ['csv', 'dir', 'onnx'].map(end => join(folder, `${model}.${end}`))
      await writeFile(data, csv(labelOf))
      await succeed('train', '--data', data, '--model', model, '--dir', dir, '--json')
      await succeed('export', '--dir', dir, '--format', 'onnx', '--out', out)
      const lines = (await succeed('predict', '--dir', dir, '--data', data, '--json')).trim().split('\n').slice(0, -1)
      const expected = lines.map(line => JSON.parse(line) as { label: string | number; scores: number[] })
      const file = readOnnx(await readFile(out))
      const rows = ROWS.map(row => row.map(x => (Number.isNaN(x) ? x : Math.fround(Number(x.toFixed(5))))))
      const outputs = evaluate(file, { features: { shape: [rows.length, 3], data: rows.flat() } })
      const scores = (outputs.probabilities ?? outputs.prediction).data
      for (const [i, score] of expected.flatMap(one => one.scores).entries()) {
        assert.ok(Math.abs(scores[i] - score) < 1e-5 * Math.max(1, Math.abs(score)), `${i}: ${scores[i]} ${score}`)
      }
      if (model !== 'linear')
        assert.deepEqual(
          outputs.label.data,
          expected.map(({ label }) => label)
        )
      const metadata = Object.fromEntries(file.metadataProps.map(({ key, value }) => [key, value]))
      assert.deepEqual(
        JSON.parse(metadata.columns).map(({ name }: { name: string }) => name),
        ['a', 'b', 'c']
      )
    })
  }

  it('refuses options of other formats, and files that exist', async () => {
    const [dir, out] = [join(folder, 'linear.dir'), join(folder, 'linear.onnx')]
    const refused = async (...args: string[]) =>
      (await admb(['export', '--dir', dir, '--format', 'onnx', ...args])).stderr
    assert.match(await refused('--out', out), /already exists/)
    assert.match(await refused('--out', `${out}2`, '--layout', 'admb'), /--layout is for safetensors/)
  })

  it('passes the ONNX checker, and onnxruntime has the same outputs', async function () {
    if (!hasPython('onnx,onnxruntime')) return this.skip()
    await useBackend('cpu')
    const cases = []
    for (const [i, { name, file, inputs, outputs }] of (await onnxCases(1)).entries()) {
      const path = join(folder, `case${i}.onnx`)
      await writeFile(path, file)
      cases.push({ name, file: path, inputs, outputs })
    }
    await writeFile(join(folder, 'cases.json'), JSON.stringify(cases))
    const program = await readFile('scripts/reference/onnx_check.py', 'utf8')
    const report = await runPython(program, join(folder, 'cases.json'))
    assert.equal(report.trim().split('\n').length, cases.length, report)
    console.log(report.trimEnd().replace(/^/gm, '      '))
  })
})
