/** Mutants of code: which there are, and that the instrumented program is one or the other. */
import assert from 'node:assert/strict'
import { instrument } from '../../../scripts/testing/instrument.js'

/** The results of `f(…given)`: without a mutant, and with each. */
async function resultsOf(source: string, ...given: unknown[]) {
  const { code, mutants } = await instrument('f.ts', source, 0)
  const body = code.replace('export ', '')
  const result = (active: number) =>
    new Function('$m', 'given', `${body}; return f(...given)`)((id: number) => id === active, structuredClone(given))
  return { original: result(-1), mutants: mutants.map(({ id, from, to }) => `${from} → ${to}: ${result(id)}`) }
}

describe('mutants of code', () => {
  it('replace operators, conditions and numbers, one at a time', async () => {
    const source = 'export function f(a: number): number {\n  const b = a\n  if (b < 3) return b * 2\n  return 7\n}'
    const { original, mutants } = await resultsOf(source, 3)
    assert.equal(original, 7)
    assert.deepEqual(mutants.slice(1), [
      'b < 3 → b <= 3: 6',
      'b < 3 → b >= 3: 6',
      'b < 3 → true: 6',
      'b < 3 → false: 7',
      '3 → 4: 6',
      'b * 2 → b / 2: 7',
      '2 → 3: 7',
      '7 → 8: 8'
    ])
    assert.match(mutants[0], /^\{.*\} → \{\}: undefined$/)
  })

  it('remove statements and bodies, also where no semicolons separate them', async () => {
    const source =
      'export function f(list: number[]): string {\n  list.push(1)\n  ;[...list].forEach(one => list.push(one))\n  return list.join()\n}'
    const { original, mutants } = await resultsOf(source, [])
    assert.equal(original, '1,1')
    assert.deepEqual(mutants.slice(1), [
      'list.push(1) ; → : ',
      '1 → 2: 2,2',
      '[...list].forEach(one => list.push(one)) → : 1',
      '[...list] → []: 1',
      'one => list.push(one) → () => undefined: 1'
    ])
  })

  it('leave types, texts and messages of errors', async () => {
    const source = `export function f(a: 1 | 2): string {\n  if (!a) throw new RangeError('x' + a)\n  return 'a' + (a as 2)\n}`
    const { mutants } = await instrument('f.ts', source, 0)
    assert.deepEqual(
      mutants.map(({ to }) => to),
      ['{}', 'a', 'true', 'false']
    )
  })

  it('leave code that runs when its module is loaded', async () => {
    const { mutants } = await instrument('f.ts', 'const A = 1 + 2\nexport const f = () => A * 2', 5)
    assert.deepEqual(
      mutants.map(({ id, to }) => [id, to]),
      [
        [5, '() => undefined'],
        [6, 'A / 2'],
        [7, '3']
      ]
    )
  })
})
