/** How mutants find the code that they change. */
import assert from 'node:assert/strict'
import { createMutant, mutantsOf, removeMutants } from '../../support/mutants.js'
import { NamedPoints } from '../../support/named-points.js'

const CODE = `
export const LIMIT = 64;
class Sum {
  #count = 0;
  get mean() { return this.#total / this.#count; }
  add(one) { this.#total += one; this.#count += 1; }
  remove(one) { this.#total -= one; this.#count -= 1; }
}
export function add(a, b) { return  a
  + b; }
`

describe('named points of code', () => {
  const points = new NamedPoints(new Map([['sum.js', CODE]]))
  const find = (point: string, code: string) => {
    const { file, start, end } = points.find(point, code)
    assert.equal(file, 'sum.js')
    return CODE.slice(start, end)
  }

  it('are constants, functions, methods, getters and fields', () => {
    assert.equal(find('LIMIT', '64'), '64')
    assert.equal(find('add', '+b'), '+ b')
    assert.equal(find('Sum.#count', '0'), '0')
    assert.equal(find('Sum.mean', 'this.#total'), 'this.#total')
    assert.equal(find('Sum.remove', 'this.#count -= 1;'), 'this.#count -= 1;')
  })

  it('are found in another file, and with other white space', () => {
    assert.equal(find('add', 'return a + b;'), 'return  a\n  + b;')
    const moved = new NamedPoints(
      new Map(Object.entries({ 'a.js': 'const other = 1', 'b.js': CODE.replaceAll(' ', '\n ') }))
    )
    assert.equal(moved.find('Sum.add', 'this.#count+=1').file, 'b.js')
  })

  it('are refused if the code is not there, or more than once, or parts of words only', () => {
    assert.throws(() => points.find('Sum.add', 'this.#count -= 1'), /expected 1 match in Sum\.add, found 0: this/)
    assert.throws(() => points.find('Sum.add', 'one'), /expected 1 match in Sum\.add, found 2: one/)
    assert.throws(() => points.find('Sum.add', 'on'), /found 0/)
    assert.throws(() => points.find('Sum.subtract', 'one'), /has the name Sum\.subtract$/)
    const twice = new NamedPoints(new Map(Object.entries({ 'a.js': CODE, 'b.js': CODE })))
    assert.throws(() => twice.find('Sum.remove', 'one; '), /found 2/)
  })
})

describe('mutants', () => {
  after(removeMutants)

  for (const name of ['defects', 'defences', 'master', 'reachability', 'repairs']) {
    it(`find their code: ${name}`, () => {
      const mutants = mutantsOf(name)
      assert.ok(mutants.length > 0)
      for (const { without, changes } of mutants) createMutant(without, changes)
    })
  }

  it('that do not find it are named', () => {
    const changes = [{ point: 'Edge.sentId', from: 'no such code', to: '' }]
    assert.throws(
      () => createMutant('the lost one', changes),
      /^Error: mutant the lost one: expected 1 match in Edge\.sentId/
    )
  })
})
