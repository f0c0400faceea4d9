/** Weights of inputs and classes, and identifiers, from the command line. */
import assert from 'node:assert/strict'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { train } from '../../../src/library/train.js'
import { admb } from '../../support/admb-command.js'
import { scratchFolder } from '../../support/scratch.js'

describe('weights', function () {
  this.timeout(60_000)
  const folder = scratchFolder()

  const write = async (name: string, content: string) => {
    await writeFile(join(folder, name), content)
    return join(folder, name)
  }
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await admb([...args, '--json'])
    assert.equal(code, 0, stderr)
    return stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as Record<string, never>)
  }

  it('of inputs make one row count as several, in training, evaluation and a continued run', async () => {
    // The rows contradict each other, and the heavier ones win.
    const rows = '1,3,a,yes\n1,1,b,no\n-1,1,c,yes\n-1,3,d,no\n'
    const data = await write('weighted.csv', `x,w,id,y\n${rows.repeat(50)}`)
    const dir = join(folder, 'weighted')
    const options = ['--label', 'y', '--weight', 'w', '--id', 'id', '--scale', 'none']
    const [report] = await json('train', '--data', data, ...options, '--dir', dir)
    assert.deepEqual([report.inputs, report.weight], [200, 400])
    const [scored] = await json('eval', '--data', data, '--dir', dir)
    assert.equal(scored.accuracy, 0.75)
    assert.ok(Math.abs(scored.loss - 0.5623) < 0.02, `loss ${scored.loss}`)
    const text = await admb(['train', '--data', data, '--dir', dir])
    assert.match(text.stdout, /weight +400\n/)

    const asked = await write('new.csv', 'id,x\nfirst,1\n2,-1\n3,x\n')
    const answers = await json('predict', '--data', asked, '--dir', dir, '--skip-limit', '1')
    assert.deepEqual(
      answers.slice(0, 3).map(({ rowId, label, error }) => [rowId, label ?? error]),
      [
        ['first', 'yes'],
        ['2', 'no'],
        [
          undefined,
          '4:3: "x" in the numeric column "x" is not a number: write a number, or leave the field empty if the value is missing'
        ]
      ]
    )
    const plain = await admb(['predict', '--data', asked, '--dir', dir, '--skip-limit', '1'])
    assert.match(plain.stdout, /^first yes 0\.\d+\n2 no 0\.\d+\nerror: /)
  })

  it('of classes are balanced by the first rows, given, or in the schema', async () => {
    const data = await write('rare.csv', `x,y\n${'1,no\n'.repeat(75)}${'1,yes\n'.repeat(25)}`)
    const { stdout } = await admb(['schema', '--data', data, '--label', 'y', '--class-weights', 'balanced'])
    assert.match(stdout, /weights:\n +no: 0.667\n +yes: 2\n/)
    const schema = await write('rare.yaml', stdout)
    const weightsOf = async (...options: string[]) => {
      const dir = await mkdtemp(join(folder, 'model-'))
      await json('train', '--data', data, '--dir', join(dir, 'a'), '--shuffle-window', '100', ...options)
      const [answer] = await json('predict', '--data', data, '--dir', join(dir, 'a'), '--limit', '1')
      return answer.scores as readonly number[]
    }
    const label = ['--label', 'y']
    const [, plain] = await weightsOf(...label)
    const [, balanced] = await weightsOf(...label, '--class-weights', 'balanced')
    assert.ok(plain < 0.35 && balanced > 0.4, `${plain} and ${balanced}`)
    assert.deepEqual(await weightsOf(...label, '--class-weights', 'no=0.667,yes=2'), [1 - balanced, balanced])
    assert.deepEqual(await weightsOf('--schema', schema), [1 - balanced, balanced])
    const file = await write('weights.yaml', 'no: 0.667\nyes: 2\n')
    assert.deepEqual(await weightsOf(...label, '--class-weights', file), [1 - balanced, balanced])
  })

  it('that cannot be used are refused in one line', async () => {
    const data = await write('classes.csv', `x,y\n${'1,no\n2,yes\n'.repeat(50)}`)
    const numbers = await write('numbers.csv', `x,y\n${'1,0.5\n2,1.5\n'.repeat(50)}`)
    const refuses = async (reason: RegExp, ...args: string[]) => {
      const { code, stderr } = await admb(['train', '--label', 'y', ...args])
      assert.ok(code === 1 || code === 2, stderr)
      assert.match(stderr.trim().split('\n').at(-1) ?? '', reason)
    }
    await refuses(/"maybe" is not among the classes no, yes/, '--data', data, '--class-weights', 'maybe=2')
    await refuses(/It must be balanced, CLASS=WEIGHT/, '--data', data, '--class-weights', 'no=-1')
    await refuses(/class weights are for classes/, '--data', numbers, '--class-weights', 'balanced')
    await refuses(
      /the class "maybe" does not occur/,
      '--data',
      data,
      '--class-weights',
      'balanced',
      '--class-names',
      'no,yes,maybe'
    )
    const text = await write('text.txt', 'a line of text\n'.repeat(50))
    const { code, stderr } = await admb(['train', '--data', text, '--model', 'gpt', '--class-weights', 'balanced'])
    assert.deepEqual([code, stderr], [2, 'admb: class weights are for classes: remove them (ERR_OPTION)\n'])
    await refuses(/weight has no meaning for libsvm/, '--data', data, '--format', 'libsvm', '--weight', 'x')
  })

  it('of arrays are taken by the library', async () => {
    const inputs = Array.from({ length: 200 }, () => [1])
    const labels = inputs.map((_, i) => (i % 2 === 0 ? 'no' : 'yes'))
    const weights = inputs.map((_, i) => (i % 2 === 0 ? 1 : 3))
    const weighted = await train({ inputs, labels, weights, classNames: ['no', 'yes'] })
    assert.equal(weighted.report.weight, 400)
    assert.ok(weighted.predict([1]).scores[1] > 0.6)
    const balanced = await train({
      inputs,
      labels: labels.map((l, i) => (i % 8 === 1 ? 'no' : l)),
      classWeights: 'balanced'
    })
    assert.ok(Math.abs(balanced.predict([1]).scores[1] - 0.5) < 0.1)
    await assert.rejects(train({ inputs, labels, weights: [1] }), /a number of at least 0 for each of 200 inputs/)
  })
})
