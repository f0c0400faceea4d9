/** Plug-ins: loading, errors, and the comparison between peers. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createRule } from '../../../src/learning/index.js'
import { train } from '../../../src/library/train.js'
import { learningSpecFields, loadPlugins, parseSpec, specText } from '../../../src/peer/index.js'
import { createPeerTask } from '../../../src/task/task.js'
import { scratchFolder } from '../../support/scratch.js'

describe('plug-ins', () => {
  const folder = scratchFolder()
  let modules = 0

  function module(source: string): string {
    const file = join(folder, `plugin${modules++}.mjs`)
    writeFileSync(file, source)
    return file
  }

  it('are rejected with their path if they are invalid', async () => {
    const wrong: [string, RegExp][] = [
      ['export const losses = {}', /is not a plug-in: it must export const plugin/],
      ['export const plugin = { rule: {} }', /plugin: .*rule/],
      [
        'export const plugin = { losses: { odd: { classifies: false, value: 3, slope: () => 0 } } }',
        /plugin\.losses\.odd\.value: must be a function/
      ],
      ['export const plugin = { rules: { "a b": () => ({}) } }', /plugin\.rules/],
      ['throw new Error("not today")', /does not load: not today/],
      ['export const plugin = {', /does not load/]
    ]
    for (const [source, message] of wrong) {
      const file = module(source)
      await assert.rejects(loadPlugins([file]), (error: Error & { code: string }) => {
        assert.equal(error.code, 'ERR_PLUGIN')
        assert.ok(error.message.includes(file))
        assert.match(error.message, message)
        return true
      })
    }
    await assert.rejects(loadPlugins([join(folder, 'none.mjs')]), /cannot be read \(ENOENT\)/)
  })

  it('may be loaded twice, but must not share a name', async () => {
    const file = module('export const plugin = { readers: { twice: () => ({ read: () => [] }) } }')
    await loadPlugins([file])
    await loadPlugins([file])
    await assert.rejects(
      loadPlugins([module('export const plugin = { readers: { twice: () => ({ read: () => [] }) } }')]),
      /the reader twice is already registered by .*rename one/
    )
  })

  it('must fulfil the contract of update rules', async () => {
    const broken: [string, string, RegExp][] = [
      [
        'writes',
        '({ parameters, state }) => { parameters[0][0] += 1; return { parameters, state } }',
        /must not write/
      ],
      [
        'draws',
        '({ parameters, state }) => ({ parameters: parameters.map(b => b.map(() => Math.random())), state })',
        /same bits/
      ],
      ['shrinks', '({ state }) => ({ parameters: [new Float32Array(1)], state })', /with the lengths/],
      [
        'overflows',
        '({ parameters, state }) => ({ parameters: parameters.map(b => b.map(x => x / 0)), state })',
        /not finite/
      ]
    ]
    for (const [name, step, message] of broken) {
      await loadPlugins([module(`export const plugin = { rules: { ${name}: () => ({ step: ${step} }) } }`)])
      assert.throws(() => createRule({ name: `custom:${name}` }), message)
    }
  })

  it('are named in the error if they throw while learning', async () => {
    const file = module(`export const plugin = {
      losses: { breaks: { classifies: false, value: s => s, slope: () => NaN } },
      layers: { bends: (_, { tf }) => ({ forward: x => tf.sum(x, 1), vjp: (x, w, dy) => ({ dx: dy }) }) }
    }`)
    const data = { inputs: [[1, 2]], labels: [0], plugins: [file], features: 2 }
    await assert.rejects(train({ ...data, model: 'custom:breaks' }), /loss custom:breaks returned NaN/)
    await assert.rejects(
      train({
        ...data,
        classes: 2,
        model: { layers: [{ kind: 'custom:bends', name: 'bent' }] },
        execution: { backend: 'cpu' }
      }),
      /the output of layer bent has shape .* per sample, expected 2/
    )
  })

  it('can read inputs from any source', async () => {
    const file = module(`export const plugin = { readers: { count: data => ({
      dimension: 1,
      async *read() { for (let i = 0; i < Number(data); i++) yield { label: i % 2, features: new Map([[0, i % 2]]) } }
    }), wrong: () => ({ dimension: 1, read: () => [{ label: 0, features: [NaN] }] }) } }`)
    const plugins = [file]
    const { report } = await train({ plugins, data: { data: '700', format: 'custom:count', passes: 2 } })
    assert.equal(report.inputs, 1400)
    await assert.rejects(
      train({ plugins, data: { data: 'x', format: 'custom:wrong' } }),
      /x \(custom:wrong\): input 1: feature 0 is NaN/
    )
  })

  it('are part of the learning spec, by their content', async () => {
    const source = (name: string) =>
      `export const plugin = { losses: { ${name}: { classifies: true, value: s => s * s, slope: s => 2 * s } } }`
    const specOf = async (name: string) => {
      const plugins = [module(source(name))]
      return (await createPeerTask({ features: 2, model: `custom:${name}`, plugins, batch: 8 })).spec
    }
    const [one, other] = [await specOf('one'), await specOf('two')]
    const field = (spec: typeof one) => learningSpecFields(spec).find(([name]) => name === 'plugins')?.[1]
    assert.ok(field(one))
    assert.notEqual(field(one), field(other))
    assert.equal(specText(parseSpec(specText(one))), specText(one))
    const plain = (await createPeerTask({ features: 2, batch: 8 })).spec
    assert.equal(field(plain), undefined)
    assert.equal(specText(plain).includes('plugins'), false)
  })
})
