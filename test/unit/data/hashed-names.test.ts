/** Names of hashed values, for `admb explain`. */
import assert from 'node:assert/strict'
import { createParser } from '../../../src/data/index.js'

describe('hashed values', () => {
  it('are reported with the features that the rows have', () => {
    const names = new Map<number, string>()
    const schema = [
      { name: 'city', kind: 'category' },
      { name: 'text', kind: 'text', bigrams: true },
      { name: 'size', kind: 'number' }
    ] as const
    const options = { schema, target: 'number', constant: true } as const
    const text = Buffer.from('city,text,size,label\nBern,Big old House,1,2\n,"a ""b""",2,3\n')
    const parser = createParser('csv', {
      ...options,
      onHashed: (feature, { name }, value) => names.set(feature, `${name} ${value}`)
    })
    const rows = parser.push(text)
    assert.deepEqual(
      [...names.values()],
      [
        'city Bern',
        'text big',
        'text old',
        'text big old',
        'text house',
        'text old house',
        'city undefined',
        'text a'
      ].concat(['text b', 'text a b'])
    )
    // Without names, the rows are the same.
    assert.deepEqual(createParser('csv', options).push(text), rows)
    const features = new Set(rows.indices.subarray(0, rows.offsets[rows.size]))
    assert.deepEqual([...features].filter(feature => feature > 1).toSorted(), [...names.keys()].toSorted())
  })
})
