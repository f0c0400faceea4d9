/** The candidates of `admb tune`. */
import assert from 'node:assert/strict'
import { affordable, allCandidates, sampled, specWord } from '../../../src/cli/tune/candidates.js'
import { commandLine } from '../../../src/cli/tune/halving.js'
import { createAveraging, createRule, modelNames } from '../../../src/learning/index.js'

describe('the candidates of tune', () => {
  it('begin with the defaults, are valid, and are each other', () => {
    for (const model of modelNames) {
      const all = allCandidates(model, {})
      assert.deepEqual(all[0], { rule: { name: 'adagrad' }, averaging: { name: 'tail' }, batch: 1 })
      assert.equal(new Set(all.map(one => JSON.stringify(one))).size, all.length)
      for (const { rule, averaging } of all) {
        createRule(rule)
        createAveraging(averaging)
      }
    }
  })

  it('vary around the defaults of the model', () => {
    const stepsOf = (model: 'linear' | 'logistic') => {
      const all = allCandidates(model, { rule: { name: 'momentum' }, averaging: { name: 'none' }, batch: 1 })
      return all.map(({ rule }) => specWord(rule)).filter(word => !word.includes('momentum='))
    }
    assert.deepEqual(stepsOf('logistic').toSorted(), [
      'momentum',
      'momentum,step=0.003',
      'momentum,step=0.009',
      'momentum,step=0.09',
      'momentum,step=0.3'
    ])
    assert.ok(stepsOf('linear').includes('momentum,step=0.0001'))
  })

  it('keep what is given', () => {
    const given = { rule: { name: 'adagrad', step: 7 }, averaging: { name: 'tail', decay: 3 }, batch: 128 } as const
    for (const { rule, averaging, batch } of allCandidates('softmax', given)) {
      assert.equal(rule.name === 'adagrad' && rule.step, 7)
      assert.deepEqual([averaging, batch], [given.averaging, 128])
    }
  })

  it('of a large model do not step all weights for each input', () => {
    const all = allCandidates('logistic', {})
    assert.deepEqual(affordable(all, 100), all)
    assert.ok(affordable(all, 5000).every(({ rule, batch }) => rule.name === 'adagrad' || batch === 16))
    assert.ok(affordable(all, 100_000).every(({ rule, batch }) => rule.name === 'adagrad' && batch === 1))
    const given = allCandidates('logistic', { rule: { name: 'momentum' } })
    assert.deepEqual(affordable(given, 100_000), given)
  })

  it('are sampled by the seed, the first one always', () => {
    const all = allCandidates('logistic', {})
    const some = sampled(all, 10, 3)
    assert.equal(some.length, 10)
    assert.equal(some[0], all[0])
    assert.deepEqual(sampled(all, 10, 3), some)
    assert.notDeepEqual(sampled(all, 10, 4), some)
    assert.deepEqual(sampled(all, 1000, 3), all)
  })
})

describe('the command line of tune', () => {
  it('keeps the options of the data and replaces what was tuned', () => {
    const given = ['tune', '--data', 'my ads.csv', '--json', '--rule', 'adagrad', '--budget=9', '--label', "it's"]
    assert.equal(
      commandLine(given, ['--rule', 'adagrad,step=2', '--batch', '1']),
      "admb train --data 'my ads.csv' --label 'it'\\''s' --rule adagrad,step=2 --batch 1"
    )
  })
})
