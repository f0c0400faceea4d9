/** Frames survive encoding and decoding; malformed frames change nothing. */
import assert from 'node:assert/strict'
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import {
  AdmbNode,
  decodeSaved,
  encodeSavedBlocks,
  FrameError,
  formatId,
  PredictorAssembler,
  replaySteps,
  type SavedSteps
} from '../../../src/admb/index.js'
import { ContributorTable } from '../../../src/admb/state/coverage.js'
import { Reader, Writer } from '../../../src/admb/wire/bytes.js'
import { checksum } from '../../../src/admb/wire/checksum.js'
import { share } from '../../support/runs.js'
import { latticeToy, toy, toyLayout, toyStart } from '../../support/toy.js'
import { ToyPath } from '../../support/toy-path.js'

const FUZZ = Number(process.env.ADMB_FUZZ ?? share(100_000))

describe('frames', () => {
  it('preserve integers, strings and the bits of every finite block', () => {
    const block = fc
      .float32Array({ noNaN: true, noDefaultInfinity: true, maxLength: 60 })
      .chain(values =>
        fc
          .array(fc.boolean(), { minLength: values.length, maxLength: values.length })
          .map(zero => values.map((value, i) => (zero[i] ? 0 : value)))
      )
    fc.assert(
      fc.property(
        fc.maxSafeNat(),
        fc.string({ unit: 'grapheme' }),
        fc.array(block, { maxLength: 4 }),
        (n, text, blocks) => {
          const out = new Writer(8)
          out.uint(n)
          out.string(text)
          out.blocks(blocks)
          const input = new Reader(out.finish())
          assert.equal(input.uint(), n)
          assert.equal(input.string(1 << 20), text)
          const layout = { blocks: blocks.map((b, i) => ({ name: `${i}`, length: b.length })) }
          const bits = (b: Float32Array) => [...new Int32Array(b.buffer, b.byteOffset, b.length)]
          assert.deepEqual(input.blocks(layout).map(bits), blocks.map(bits))
          input.finish()
        }
      )
    )
  })

  it('have the CRC-32 of zlib, for short and long inputs', () => {
    const bytes = fc.uint8Array({ maxLength: 600 })
    fc.assert(fc.property(bytes, frame => assert.equal(checksum(frame, frame.length), crc32(frame) | 0)))
  })

  it('reject non-finite numbers', () => {
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      for (const length of [2, 40]) {
        const block = new Float32Array(length)
        block[1] = bad
        const out = new Writer()
        out.blocks([block])
        assert.throws(() => new Reader(out.finish()).blocks({ blocks: [{ name: 'w', length }] }), FrameError)
      }
    }
  })

  it('restore a saved predictor with its lineage, and reject damaged bytes', () => {
    const node = learned()
    const bytes = node.storage.save()
    const saved = decodeSaved(bytes, node.shapes, undefined, toy.digest)
    assert.deepEqual(saved.predictor, node.predictor)
    assert.equal(saved.lineage.length, node.lineage.length)
    for (let i = 0; i < bytes.length; i++) {
      const damaged = bytes.slice()
      damaged[i] ^= 1 << (i % 8)
      assert.throws(() => decodeSaved(damaged, node.shapes), FrameError)
      assert.throws(() => decodeSaved(bytes.subarray(0, i), node.shapes), FrameError)
    }
  })

  it('restore a predictor from its blocks, and reject damaged, missing and surplus blocks', () => {
    const node = learned()
    const { head, blocks } = node.storage.saveBlocks()
    const parts = [...blocks]
    const assembled = (given: readonly Uint8Array[], count = given.length) => {
      const assembler = new PredictorAssembler(head, count, node.shapes)
      for (const part of given) assembler.add(part)
      return assembler.finish(toy.digest)
    }
    assert.deepEqual(assembled(parts).predictor, node.predictor)
    assert.equal(assembled(parts).lineage.length, node.lineage.length)
    for (const [i, part] of parts.entries()) {
      const damaged = part.slice()
      damaged[Math.floor(part.length / 2)] ^= 4
      assert.throws(() => assembled(parts.with(i, damaged)), FrameError)
      assert.throws(() => assembled(parts.toSpliced(i, 1)), FrameError)
      assert.throws(() => assembled(parts.toSpliced(i, 1), parts.length), FrameError)
      assert.throws(() => assembled([...parts, part], parts.length), FrameError)
    }
    const { id, parameters, state } = node.predictor
    const bare = encodeSavedBlocks(
      {
        predictor: {
          id: { ...id, digest: toy.digest([parameters, parameters, state]) },
          parameters,
          average: parameters,
          state
        },
        lineage: []
      },
      new ContributorTable()
    )
    const fewer = [...bare.blocks]
    assert.equal(fewer.length, parts.length - parameters.length)
    const assembler = new PredictorAssembler(bare.head, fewer.length, node.shapes)
    for (const part of fewer) assembler.add(part)
    assert.equal(
      assembler.finish(toy.digest).predictor.average[0],
      assembler.finish(toy.digest).predictor.parameters[0]
    )
  })

  it('restore a predictor from an earlier one and its steps, and reject damaged and foreign steps', () => {
    const path = new ToyPath({ inputs: 64, batch: 4 })
    const [node] = path.nodes
    let inputs = 0
    const learn = () => {
      for (let i = 0; i < 9; i++) path.learn(0, inputs++)
    }
    learn()
    const before = decodeSaved(node.storage.save(), node.shapes)
    learn()
    const { head, sums } = node.storage.saveSteps(before.predictor.id)
    const replayed = (steps: SavedSteps, saved = before) => replaySteps(saved, steps, node.shapes, toy)
    assert.deepEqual(replayed({ head, sums }).predictor, node.predictor)
    assert.equal(replayed({ head, sums }).lineage.length, node.lineage.length)
    for (const part of ['head', 'sums'] as const) {
      const whole = { head, sums }
      for (let i = 0; i < whole[part].length; i++) {
        const damaged = whole[part].slice()
        damaged[i] ^= 1 << (i % 8)
        assert.throws(() => replayed({ ...whole, [part]: damaged }), FrameError)
        assert.throws(() => replayed({ ...whole, [part]: whole[part].subarray(0, i) }), FrameError)
      }
    }
    const later = decodeSaved(node.storage.save(), node.shapes)
    assert.throws(() => replayed({ head, sums }, later), /continue another predictor/)
    assert.throws(() => replaySteps(before, { head, sums }, node.shapes, { ...toy, digest: () => '0' }), FrameError)
  })

  for (const [form, fragmentBytes, isLattice] of [
    ['whole', undefined, false],
    ['in fragments', 0, false],
    ['with integer sums', undefined, true],
    ['with integer sums in fragments', 0, true]
  ] as const)
    it(`change nothing and throw nothing in ${FUZZ} mutations, ${form}`, function () {
      this.timeout(240_000)
      const all = { carry: 9, fragmentBytes, isOrdered: isLattice }
      const path = new ToyPath({ inputs: 64, batch: 40, recipe: isLattice ? latticeToy : toy, all })
      const victim = path.nodes[1]
      const frames: Uint8Array[] = []
      const receive = victim.receive.bind(victim)
      victim.receive = (edge, frame) => {
        if (edge === 1) frames.push(frame)
        receive(edge, frame)
      }
      for (let input = 0; input < 60; input++) path.learn(input % 3, input)
      const state = () => [
        formatId(victim.predictor.id),
        victim.gradients,
        victim.inspect.neighbourSum(1)?.count,
        victim.inspect.neighbourSum(2)?.count
      ]
      const before = state()
      let seed = 1
      const random = (n: number) => {
        seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff
        return seed % n
      }
      let refused = 0
      for (let run = 0; run < FUZZ; run++) {
        const original = frames[random(frames.length)]
        const mutated = original.slice(0, run % 5 === 0 ? random(original.length + 1) : original.length)
        for (let m = random(4) + 1; m > 0 && mutated.length > 0; m--) mutated[random(mutated.length)] = random(256)
        if (Buffer.compare(mutated, original) === 0) continue
        // Every other frame gets a valid checksum, so that the checks behind it are reached.
        const sealed = run % 2 === 0 && mutated.length > 4 ? seal(mutated) : mutated
        const useFreshNode = run % 2 === 0
        const target = useFreshNode ? fresh(isLattice) : victim
        target.receive(1, sealed)
        for (const effect of target.takeEffects()) if (effect.kind === 'refused') refused++
        if (!useFreshNode) assert.deepEqual(state(), before, `run ${run}`)
      }
      assert.ok(refused > FUZZ / 2, `only ${refused} were rejected`)
    })
})

const layout = toyLayout(64)

/** A node with updates of its own and of others. */
function learned(): AdmbNode {
  const path = new ToyPath({ inputs: 64, batch: 4 })
  for (let input = 0; input < 30; input++) path.learn(input % 2, input)
  return path.nodes[0]
}

/** A node for frames that may happen to be valid. */
function fresh(isLattice: boolean): AdmbNode {
  const recipe = isLattice ? latticeToy : toy
  const initial = toyStart(64, recipe)
  const node = new AdmbNode({ ...recipe, self: 'b', incarnation: 1, layout, initial, batch: 40, carry: 9 })
  node.connect(1, 1, 'a')
  return node
}

function seal(frame: Uint8Array): Uint8Array {
  const out = new Writer()
  out.raw(frame.subarray(0, frame.length - 4))
  return out.finish()
}
