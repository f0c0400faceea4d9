/** `admb explain`: weights by the names of columns and values. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { admb, admbJson } from '../../support/admb-command.js'
import { scratchFolder } from '../../support/scratch.js'

const pick = <T>(list: readonly T[], i: number): T => list[(i * 7919) % list.length]

/** The price depends on the size (3 a unit), the city and a word; not on the noise. */
function table(rows: number): string {
  const lines = Array.from({ length: rows }, (_, i) => {
    const size = 50 + 20 * Math.sin(1.7 * i)
    const noise = Math.cos(2.9 * i)
    const city = pick(['Bern', 'Oslo', 'Rome', 'Wien'], i)
    const word = pick(['old', 'new', 'big', 'tiny', 'red'], i + 1)
    const price = 3 * size + (city === 'Oslo' ? 60 : 0) + (word === 'new' ? 40 : 0)
    const text = `a ${word} house near the river number ${i}`
    const time = `2024-0${1 + (i % 9)}-11 ${10 + (i % 10)}:00`
    return `${size.toFixed(3)},${i % 9 === 0 ? '' : noise.toFixed(3)},${city},${text},${time},${price.toFixed(2)},${price > 175 ? 'dear' : 'cheap'}`
  })
  return `size,noise,city,text,time,price,class\n${lines.join('\n')}\n`
}

interface Weight {
  readonly feature: string
  readonly class?: string
  readonly weight: number
  readonly perUnit?: number
  readonly effect?: number
}

describe('admb explain', function () {
  this.timeout(60_000)
  const dir = scratchFolder()
  let data: string
  const path = (name: string) => join(dir, name)
  const json = (...words: string[]) => admbJson(words)
  before(async () => {
    data = path('homes.csv')
    writeFileSync(data, table(3000))
    await json(
      'train',
      '--data',
      data,
      '--label',
      'price',
      '--ignore',
      'class',
      '--dir',
      path('price'),
      '--passes',
      '3'
    )
  })

  it('names the weights of columns, and with data those of hashed values', async () => {
    const unnamed = await json('explain', '--dir', path('price'), '--top', '10000')
    const named = await json('explain', '--dir', path('price'), '--data', data, '--top', '10000')
    const find = ({ weights }: { readonly weights: readonly Weight[] }, name: string) =>
      weights.find(({ feature }) => feature === name) as Weight
    assert.ok(Math.abs((find(unnamed, 'size').perUnit as number) - 3) < 0.5)
    assert.equal(find(unnamed, 'size').effect, find(unnamed, 'size').weight)
    assert.equal(find(unnamed, 'city=Oslo'), undefined)
    assert.ok(unnamed.weights.some(({ feature }: Weight) => /^value with hash \d+$/.test(feature)))
    for (const name of ['size', 'noise', 'noise: missing', 'time: hour (sine)', 'city=Oslo', 'text: new']) {
      assert.ok(find(named, name), name)
    }
    assert.ok(named.weights.every(({ feature }: Weight) => !feature.startsWith('value with hash')))
    const cities = named.weights.filter(({ feature }: Weight) => feature.startsWith('city='))
    assert.equal(cities.length, 4)
    const oslo = find(named, 'city=Oslo')
    assert.ok(cities.every((city: Weight) => city === oslo || city.weight < oslo.weight - 20))
    // A quarter of the rows.
    assert.ok(Math.abs((oslo.effect as number) / oslo.weight - Math.sqrt(3) / 4) < 1e-3)
  })

  it('says for which class a weight speaks', async () => {
    const flags = ['--label', 'class', '--ignore', 'price,text', '--data', data]
    await json('train', ...flags, '--dir', path('two'))
    await json('train', ...flags, '--dir', path('softmax'), '--model', 'softmax')
    const two = await json('explain', '--dir', path('two'))
    assert.equal(two.constant.length, 1)
    const size = two.weights.find(({ feature }: Weight) => feature === 'size')
    assert.deepEqual([size.class, size.weight > 0], ['dear', true])
    const both = await json('explain', '--dir', path('softmax'))
    const sizes = both.weights.filter(({ feature }: Weight) => feature === 'size') as Weight[]
    assert.deepEqual(sizes.map(weight => weight.class).toSorted(), ['cheap', 'dear'])
    assert.ok(Math.abs(sizes[0].weight + sizes[1].weight) < 1e-5)
  })

  it('prints tables', async () => {
    const { stdout } = await admb(['explain', '--dir', path('two'), '--data', data, '--top', '2'])
    assert.match(stdout, /^constant +-?\d/m)
    assert.match(stdout, /^feature +class +weight +per unit +effect$/m)
    assert.match(stdout, /^size +dear +\d[.\d]* +\d[.\d]* +\d[.\d]*$/m)
    assert.match(stdout, /^and \d+ more weights: --top \d+$/m)
  })

  it('refuses networks', async () => {
    const flags = ['--label', 'class', '--ignore', 'price,text,city,time', '--data', data, '--limit', '100']
    await json('train', ...flags, '--model', 'mlp', '--dir', path('mlp'))
    const { code, stderr } = await admb(['explain', '--dir', path('mlp')])
    assert.equal(code, 2)
    assert.match(stderr, /give --dir of a linear model/)
  })
})
