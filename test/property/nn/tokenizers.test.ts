/** Tokenizers, their training, and rows of tokens, for drawn texts. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { type CountedWord, type Merge, mergePairs } from '../../../src/nn/tokenizers/merges.js'
import { subwordTokenizer, trainTokenizer } from '../../../src/nn/tokenizers/subwords.js'
import { alphabetOf, characterTokenizer, nextTokenRows } from '../../../src/nn/tokenizers/tokenizer.js'

/** The merges by counting all pairs before each. */
function slowMerges(words: readonly CountedWord[], limit: number): Merge[] {
  const merges: Merge[] = []
  let current = words.map(({ pieces }) => [...pieces])
  while (new Set(merges.map(({ merged }) => merged)).size < limit) {
    const counts = new Map<string, number>()
    for (const [word, pieces] of current.entries()) {
      for (let i = 0; i + 1 < pieces.length; i++) {
        const pair = `${pieces[i]} ${pieces[i + 1]}`
        counts.set(pair, (counts.get(pair) ?? 0) + words[word].count)
      }
    }
    const pairs = [...counts].map(([pair, count]) => ({ parts: pair.split(' '), count }))
    const inOrder = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
    const [best] = pairs.sort(
      (a, b) => b.count - a.count || inOrder(a.parts[0], b.parts[0]) || inOrder(a.parts[1], b.parts[1])
    )
    if (best === undefined || best.count < 2) break
    const [left, right] = best.parts
    merges.push({ left, right, merged: left + right })
    current = current.map(pieces => {
      const next: string[] = []
      for (const piece of pieces) {
        // A piece that a merge has just made is not merged again.
        if (piece === right && next.at(-1) === left) next[next.length - 1] = `${left}\u0000${right}`
        else next.push(piece)
      }
      return next.map(piece => piece.replace('\u0000', ''))
    })
  }
  return merges
}

describe('tokenizers', () => {
  const words = fc.array(
    fc.record({
      pieces: fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 12 }),
      count: fc.integer({ min: 1, max: 5 })
    }),
    { maxLength: 12 }
  )

  it('merge the pair that is most frequent at each step', () =>
    fc.assert(
      fc.property(words, fc.nat(12), (drawn, limit) => {
        assert.deepEqual(
          mergePairs(drawn, (left, right) => left + right, limit),
          slowMerges(drawn, limit)
        )
      })
    ))

  const texts = fc.array(fc.string({ unit: fc.constantFrom(...'aábß d\n.,2😀'), maxLength: 40 }), { maxLength: 8 })

  it('byte pairs decode any text unchanged, and their training does not depend on the order of texts', () =>
    fc.assert(
      fc.property(texts, fc.string({ unit: 'grapheme' }), fc.integer({ min: 257, max: 300 }), (drawn, text, size) => {
        const json = trainTokenizer(drawn, 'bpe', size)
        assert.deepEqual(trainTokenizer([...drawn].reverse(), 'bpe', size), json)
        const tokenizer = subwordTokenizer(json)
        assert.ok(tokenizer.vocabulary <= size)
        for (const any of [text, ...drawn]) assert.equal(tokenizer.decode(tokenizer.encode(any)), any)
      })
    ))

  it('word pieces know all words that they were trained on', () =>
    fc.assert(
      fc.property(texts, drawn => {
        const json = trainTokenizer(drawn, 'wordpiece', 300)
        assert.deepEqual(trainTokenizer([...drawn].reverse(), 'wordpiece', 300), json)
        const tokenizer = subwordTokenizer(json)
        assert.ok(tokenizer.vocabulary <= 300)
        for (const text of drawn) assert.ok(!tokenizer.encode(text).includes(1))
      })
    ))
})

describe('text', () => {
  it('characters: any text over the alphabet is decoded unchanged', () =>
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), text => {
        const tokenizer = characterTokenizer(alphabetOf(text))
        const tokens = tokenizer.encode(text)
        assert.equal(tokenizer.decode(tokens), text)
        // U+FFFD is the text of token 0, which also pads.
        const unknown = [...text].map(character => character === '\u{FFFD}')
        assert.ok(tokens.every((token, i) => (token === 0) === unknown[i] && token < tokenizer.vocabulary))
      }),
      { examples: [['a\u{FFFD}b']] }
    ))

  it('next-token rows overlap by one token and cover the text except for a remainder', () =>
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme-ascii', minLength: 9, maxLength: 60 }),
        fc.integer({ min: 1, max: 8 }),
        (text, length) => {
          const tokenizer = characterTokenizer(alphabetOf(text))
          const rows = nextTokenRows(text, tokenizer, length)
          assert.ok(rows.every(row => row.length === length + 1))
          const joined = rows.flatMap(row => [...row.subarray(0, length)])
          assert.deepEqual(joined, tokenizer.encode(text).slice(0, joined.length))
          for (let r = 1; r < rows.length; r++) assert.equal(rows[r][0], rows[r - 1][length])
          assert.ok(text.length - joined.length <= length + 1 && text.length > joined.length)
        }
      )
    ))
})
