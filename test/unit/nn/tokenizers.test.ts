/** Tokenizers and token rows. */
import assert from 'node:assert/strict'
import { parseTokenizer, subwordTokenizer, trainTokenizer } from '../../../src/nn/tokenizers/subwords.js'
import { characterTokenizer, nextTokenRows, textRow } from '../../../src/nn/tokenizers/tokenizer.js'

describe('text', () => {
  it('characters: characters outside the alphabet are token 0', () => {
    assert.deepEqual(characterTokenizer('abc').encode('a!c'), [1, 0, 3])
  })

  it('a text too short for a row is an error', () => {
    assert.throws(() => nextTokenRows('abc', characterTokenizer('abc'), 3), {
      name: 'ModelError',
      message: /3 tokens: provide at least 4/
    })
  })

  it('complete texts are truncated or padded', () => {
    const tokenizer = characterTokenizer('abc')
    assert.deepEqual(textRow(['cab'], tokenizer, 5), Int32Array.of(3, 1, 2, 0, 0))
    assert.deepEqual(textRow(['cab'], tokenizer, 2), Int32Array.of(3, 1))
  })

  describe('word pieces', () => {
    const texts = Array(20).fill(['The cat sat. The cat ate!', 'A cat, a mat: Catty']).flat()
    const json = trainTokenizer(texts, 'wordpiece', 300)

    it('split unknown words and add start and end tokens', () => {
      const tokenizer = subwordTokenizer(json)
      const [start, ...rest] = tokenizer.encodeWithSpecialTokens(['the cat mat'], 99)
      assert.equal(start, 2)
      assert.equal(rest[rest.length - 1], 3)
      assert.deepEqual(tokenizer.encode('the cat mat'), rest.slice(0, -1))
      assert.equal(tokenizer.encode('cat').length, 1)
      // Not in the vocabulary as a word, but its characters are.
      assert.equal(tokenizer.encode('tac').length, 3)
      assert.equal(tokenizer.decode(tokenizer.encodeWithSpecialTokens(['The mat'], 99)), 'the mat')
      assert.deepEqual(tokenizer.encode('Ω'), [1])
    })

    it('keep start and end tokens under truncation, the longer text of a pair being truncated first', () => {
      const tokenizer = subwordTokenizer(json)
      const [the, cat, sat, mat] = ['the', 'cat', 'sat', 'mat'].map(word => tokenizer.encode(word)[0])
      const encode = (texts: string[], most: number) => tokenizer.encodeWithSpecialTokens(texts, most)
      assert.equal(tokenizer.separator, 3)
      assert.deepEqual(encode(['the cat sat'], 4), [2, the, cat, 3])
      assert.deepEqual(encode(['the cat', 'sat mat'], 9), [2, the, cat, 3, sat, mat, 3])
      assert.deepEqual(encode(['the cat sat', 'mat'], 6), [2, the, cat, 3, mat, 3])
      assert.deepEqual(encode(['the', 'cat sat mat'], 5), [2, the, 3, cat, 3])
      assert.deepEqual(encode(['the cat', 'sat mat'], 6), [2, the, 3, sat, mat, 3])
      assert.deepEqual(encode(['the cat', ''], 9), [2, the, cat, 3, 3])
    })

    it('are the same for any order of the texts', () => {
      assert.deepEqual(trainTokenizer([...texts].reverse(), 'wordpiece', 300), json)
    })
  })

  describe('byte pairs', () => {
    it('need a size for all bytes', () => {
      assert.throws(() => trainTokenizer(['a'], 'bpe', 256), {
        name: 'ModelError',
        message: 'a tokenizer of 256 tokens: give a size from 257 to 1000000'
      })
    })
  })

  describe('tokenizer.json', () => {
    it('byte pairs are merged in file order', () => {
      const vocab = { '<|endoftext|>': 0, l: 1, o: 2, w: 3, e: 4, r: 5, Ġ: 6, lo: 7, low: 8, er: 9, Ġlow: 10 }
      const json = JSON.stringify({
        version: '1.0',
        added_tokens: [
          {
            id: 0,
            content: '<|endoftext|>',
            single_word: false,
            lstrip: false,
            rstrip: false,
            normalized: false,
            special: true
          }
        ],
        normalizer: null,
        pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true },
        post_processor: null,
        decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true },
        model: {
          type: 'BPE',
          vocab,
          merges: ['l o', 'lo w', 'e r', 'Ġ low']
        }
      })
      const tokenizer = parseTokenizer(json, 'tokenizer.json')
      assert.deepEqual(tokenizer.encode('lower low'), [8, 9, 10])
      assert.equal(tokenizer.decode([8, 9, 10]), 'lower low')
      assert.equal(tokenizer.vocabulary, 11)
    })

    it('an invalid file is an error', () => {
      for (const text of ['{"a": 1}', 'not JSON']) {
        assert.throws(() => parseTokenizer(text, 'other.json'), {
          name: 'ModelError',
          message: /^other\.json is not a valid tokenizer\.json: [^\n]+$/
        })
      }
    })
  })
})
