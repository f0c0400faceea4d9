/** Commands on a directory of each kind of model. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { admb, admbJson } from '../../support/admb-command.js'
import { kindsOfModels, writeData } from '../../support/model-kinds.js'

describe('admb on a directory of', function () {
  this.timeout(120_000)
  const folder = mkdtempSync(join(tmpdir(), 'admb-kinds-'))
  before(() => writeData(folder))
  after(() => rmSync(folder, { recursive: true, force: true }))

  for (const [name, { data, label, length, tokenizer, model }] of kindsOfModels)
    it(`${name} continues training, evaluates and predicts`, async () => {
      const path = data === 'digits' ? data : join(folder, data)
      const dir = join(folder, name)
      const task = ['--data', path, ...(label ? ['--label', label] : [])]
      if (model !== undefined) {
        writeFileSync(`${dir}.json`, JSON.stringify(model))
        task.push('--model', `${dir}.json`)
      }
      if (length !== undefined) task.push('--length', String(length))
      if (tokenizer !== undefined) task.push('--tokenizer', tokenizer)
      const train = () => admbJson(['train', ...task, '--limit', '200', '--batch', '16', '--dir', dir])
      const first = await train()
      const second = await train()
      assert.ok(second.updates > first.updates)
      const score = await admbJson(['eval', '--dir', dir, '--data', path, '--limit', '200'])
      assert.ok(score.inputs > 0 && Number.isFinite(score.loss))
      const { macroF1, matthews, byClass, pearson, perplexity } = score.metrics
      const hasClasses = byClass !== undefined && macroF1 >= 0 && macroF1 <= 1 && Math.abs(matthews) <= 1
      assert.ok(hasClasses || Math.abs(pearson) <= 1 || perplexity > 1, JSON.stringify(score.metrics))
      if (name === 'mlp') assert.deepEqual(score.classNames, ['no', 'yes'])
      const { code, stdout, stderr } = await admb(['predict', '--dir', dir, '--data', path, '--limit', '50'])
      assert.equal(code, 0, stderr)
      assert.ok(stdout.trim().split('\n').length > 0)
    })
})
