/** Options with which peers cannot make local steps. */
import assert from 'node:assert/strict'
import type { LearningSpec } from '../../../src/task/learning-spec.js'
import type { TaskOptions } from '../../../src/task/options.js'
import { learningSpecFields } from '../../../src/task/spec-text.js'
import { createTask } from '../../../src/task/task.js'

const network = { model: { model: 'mlp', hidden: [4] }, classes: 2, rule: { name: 'adam' } } as const

describe('local steps', () => {
  const specOf = async (options: TaskOptions, role: 'peer' | 'serial' = 'peer') =>
    (await createTask({ model: 'logistic', features: 3, batch: 64, localSteps: 8, ...options }, role)).specFor({})

  it('are part of what peers agree on', async () => {
    const { localSteps } = await specOf({})
    assert.equal(localSteps, 8)
  })

  it('have a budget of bytes that peers agree on', async () => {
    const fields = Object.fromEntries(
      learningSpecFields((await specOf({ ...network, sumBytes: 0.03 })) as LearningSpec)
    )
    assert.equal(fields['sum-bytes'], '0.03')
  })

  it('have no momentum unless one is given', async () => {
    assert.equal((await specOf({})).localMomentum, undefined)
    assert.equal((await specOf({ localMomentum: 0 })).localMomentum, undefined)
    const fields = Object.fromEntries(learningSpecFields((await specOf({ localMomentum: 0.7 })) as LearningSpec))
    assert.equal(fields['local-momentum'], '0.7')
  })

  for (const [options, reason] of [
    [{ localSteps: 1 }, /must be an integer from 2 to b, which is 64, not 1/],
    [{ localSteps: 65 }, /from 2 to b, which is 64, not 65/],
    [{ localMomentum: 1 }, /the momentum of local steps must be at least 0 and less than 1, not 1/],
    [{ localSteps: undefined, localMomentum: 0.5 }, /give --local-steps/],
    [{ rule: { name: 'dual-averaging' } }, /dual averaging cannot make local steps: .*choose another rule/],
    [{ batch: '32..64' }, /need a fixed batch: .*give --batch one number/],
    [{ trust: 'bounded' }, /remove --local-steps or --trust bounded/],
    [{ model: 'softmax', classNames: ['a', 'b'], classesMax: 5 }, /remove --local-steps or --classes \.\.MAX/],
    [{ sumBytes: 0.03 }, /a budget of bytes is for networks: give a network/],
    [{ ...network, sumBytes: 0.03, localSteps: undefined }, /a budget of bytes is for local steps: give --local-steps/],
    [{ ...network, sumBytes: 0.03, sums: 'exact' }, /a budget of bytes is for integer sums: give --sums lattice/],
    [{ ...network, sumBytes: 0 }, /must be above 0 and at most 1, not 0/]
  ] as const)
    it(`are refused with ${JSON.stringify(options)}`, () =>
      assert.rejects(specOf(options as TaskOptions), { code: 'ERR_OPTION', message: reason }))

  for (const [fields, reason] of [
    [{ localSteps: 1 }, /from 2 to b, which is 64, not 1/],
    [{ localMomentum: 1 }, /less than 1, not 1/]
  ] as const)
    it(`are refused with ${JSON.stringify(fields)} in a specification`, async () => {
      const spec = { ...((await specOf({})) as LearningSpec), ...fields }
      assert.throws(() => learningSpecFields(spec), { code: 'ERR_OPTION', message: reason })
    })

  it('are refused without peers', () => assert.rejects(specOf({}, 'serial'), /local steps are for peers/))
})
