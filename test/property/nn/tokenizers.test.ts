/** The character tokenizer and its rows, for drawn texts. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { alphabetOf, characterTokenizer, nextTokenRows } from '../../../src/nn/tokenizers/tokenizer.js'

describe('text', () => {
  it('characters: any text over the alphabet is decoded unchanged', () =>
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), text => {
        const tokenizer = characterTokenizer(alphabetOf(text))
        const tokens = tokenizer.encode(text)
        assert.equal(tokenizer.decode(tokens), text)
        assert.ok(tokens.every(token => token > 0 && token < tokenizer.vocabulary))
      })
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
