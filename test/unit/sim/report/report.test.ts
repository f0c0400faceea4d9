/** Reports are complete, well-formed, consistent with the runs, and load nothing from the network. */
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseScenario, simulate } from '../../../../sim/index.js'
import { figuresOf, outcomesOf } from '../../../../sim/report/figures.js'
import { groupRuns, loadWriter, type ReportedRun, spreadOf, TimelineRecorder } from '../../../../sim/report/index.js'
import { summarise } from '../../../../sim/report/page.js'
import { curvesOf, scenarioEntries } from '../../../../sim/report/tables.js'
import { parseCsv } from '../../../support/reports.js'
import { scratchFolder } from '../../../support/scratch.js'

const BASE = { nodes: 6, inputs: 3000, batch: 64, dimension: 5, faults: { crashShare: 0.05, partitionShare: 0.1 } }

function measured(varied: ReportedRun['varied'], label: string): ReportedRun {
  const scenario = parseScenario({ ...BASE, ...varied }, 'test')
  const recorder = new TimelineRecorder(scenario)
  const result = simulate(scenario, { observer: recorder.observer })
  return { label, varied, scenario, result, timeline: recorder.finish(result.virtualMs) }
}

/** Asserts that tags are balanced, attributes quoted, and `&` and `<` escaped. */
function assertWellFormed(xml: string, what: string): void {
  const open: string[] = []
  let rest = xml.replace(/^<\?xml[^>]*\?>\s*/, '')
  while (rest !== '') {
    const token =
      /^(?:<\/([\w:-]+)\s*>|<([\w:-]+)((?:\s+[\w:-]+="[^"<]*")*)\s*(\/?)>|[^<&]+|&(?:amp|lt|gt|quot|apos|#\d+|#x[\da-f]+);)/i.exec(
        rest
      )
    assert.ok(token, `${what}: ${rest.slice(0, 80)}`)
    const [all, closing, opening, attributes, isEmpty] = token
    for (const ampersand of (attributes ?? '').match(/&[^;"]*;?/g) ?? []) {
      assert.match(ampersand, /^&(?:amp|lt|gt|quot|apos|#\d+);$/, what)
    }
    if (closing !== undefined) assert.equal(open.pop(), closing, what)
    else if (opening !== undefined && isEmpty === '') open.push(opening)
    rest = rest.slice(all.length)
  }
  assert.deepEqual(open, [], what)
}

describe('a report', function () {
  this.timeout(60_000)
  const label = 'admb </script><b>"&\''
  const folder = scratchFolder()
  let runs: ReportedRun[]
  let page: string

  before(async () => {
    runs = [measured({ algorithm: 'serial' }, 'serial'), measured({ algorithm: 'admb' }, label)]
    const write = await loadWriter()
    await write(folder, { title: 'Title <1>', about: 'About & so on.', command: "admb sim run 'a b'", runs })
    page = await readFile(join(folder, 'index.html'), 'utf8')
  })

  it('is a single page that loads nothing', () => {
    assert.doesNotMatch(page, /(?:src|href|srcset|action|data)\s*=\s*["']?\s*(?:https?:)?\/\//i)
    assert.doesNotMatch(page, /@import|url\(/)
    assert.doesNotMatch(page, /<(?:link|img|iframe|object|embed|script)\b/)
    assert.match(page, /http-equiv="Content-Security-Policy" content="default-src 'none'/)
  })

  it('is well-formed, accessible markup', () => {
    const body = page.replace(/<style>[\s\S]*?<\/style>|<!doctype html>|<meta[^>]*>/g, '')
    assertWellFormed(body.trim(), 'index.html')
    assert.match(page, /<html lang="en">/)
    assert.match(page, /<title>Title &lt;1&gt;/)
    assert.ok(!page.includes(label))
    for (const [, name] of page.matchAll(/<figure id="([\w-]+)"/g)) {
      assert.match(page, new RegExp(`<svg[^>]*aria-labelledby="${name}-title ${name}-desc"`))
      assert.match(page, new RegExp(`<title id="${name}-title">[^<]+</title><desc id="${name}-desc">[^<]+</desc>`))
    }
  })

  it('has a well-formed SVG file in plain colours for each figure', async () => {
    const plots = [...page.matchAll(/<figure id="([\w-]+)"/g)].map(([, name]) => name)
    const files = (await readdir(join(folder, 'figures'))).sort()
    assert.deepEqual(files, plots.map(name => `${name}.svg`).sort())
    assert.ok(files.includes('regret.svg') && files.includes('run-1.svg'))
    for (const file of files) {
      const svg = await readFile(join(folder, 'figures', file), 'utf8')
      assertWellFormed(svg.trim(), file)
      assert.doesNotMatch(svg, /var\(|NaN|Infinity|undefined/, file)
      assert.match(svg, /<svg [^>]*xmlns="http:\/\/www\.w3\.org\/2000\/svg"/)
    }
  })

  it('has SVG files with dark colours for each light one', async () => {
    for (const file of await readdir(join(folder, 'figures'))) {
      const svg = await readFile(join(folder, 'figures', file), 'utf8')
      const [style, drawing] = svg.split('</style>')
      assert.match(style, /@media \(prefers-color-scheme:dark\)/)
      const rules = new Set([...style.matchAll(/\[((?:fill|stroke)="#\w+")\]/g)].map(match => match[1]))
      const used = [...drawing.matchAll(/ ((?:fill|stroke)="#\w+")/g)].map(match => match[1])
      assert.ok(used.length > 0)
      assert.deepEqual(
        [...new Set(used)].filter(one => !rules.has(one)),
        [],
        file
      )
    }
  })

  it('has the data as CSV and JSON', async () => {
    const read = (file: string) => readFile(join(folder, file), 'utf8')
    const [head, ...rows] = parseCsv(await read('runs.csv'))
    assert.equal(rows.length, 2)
    const cell = (row: number, key: string) => rows[row][head.indexOf(key)]
    assert.equal(cell(1, 'label'), label)
    assert.equal(Number(cell(1, 'regret')), runs[1].result.regret)
    assert.equal(cell(1, 'faults.crashShare'), '0.05')
    assert.equal(
      parseCsv(await read('curves.csv')).length,
      1 + runs.reduce((sum, { result }) => sum + result.curve.length, 0)
    )
    const json = JSON.parse(await read('report.json'))
    assert.deepEqual(json.runs[1].result, JSON.parse(JSON.stringify(runs[1].result)))
  })
})

describe("a report's data", () => {
  const run = (varied: ReportedRun['varied'], regret: number): ReportedRun => {
    const scenario = parseScenario({ ...BASE, ...varied }, 'test')
    const point = {
      inputs: 100,
      virtualMs: 10,
      regret,
      newestRegret: regret / 2,
      averageLoss: 0.5,
      updates: 1,
      bytes: 0
    }
    const result = {
      ...{
        algorithm: scenario.algorithm,
        nodes: 6,
        inputs: 100,
        batch: 64,
        seed: scenario.seed,
        regret,
        newestRegret: regret / 2
      },
      ...{ comparator: 'known' as const, goodInputs: 100, goodRegret: regret },
      ...{ regretByNode: { min: 0, median: regret / 6, max: regret } },
      ...{
        averageLoss: 0.5,
        comparatorLoss: 0.4,
        updates: 1,
        adoptions: 0,
        used: 0,
        held: 0,
        discarded: 0,
        messages: 0,
        bytes: 0
      },
      ...{ violations: [], events: 1, traceHash: '', virtualMs: 1, seconds: 0, curve: [point] }
    }
    const label = Object.values(varied).join(' ')
    return { label, varied, scenario, result }
  }

  it('groups runs that differ only in their seed', () => {
    const runs = [16, 32, 64].flatMap(batch => [1, 2].map(seed => run({ batch, seed }, batch * seed)))
    const groups = groupRuns(runs)
    assert.deepEqual(
      groups.map(({ label }) => label),
      ['batch 16', 'batch 32', 'batch 64']
    )
    assert.deepEqual(curvesOf(groups, 'regret', true)[0], {
      run: 'batch 16',
      x: 100,
      value: 24,
      least: 16,
      most: 32
    })
    assert.deepEqual(
      outcomesOf(groups, 'batch').map(({ x, value }) => [x, value]),
      [
        [16, 0.24],
        [32, 0.48],
        [64, 0.96]
      ]
    )
    const names = figuresOf(groups).map(({ name }) => name)
    assert.deepEqual(names, ['by-batch', 'regret', 'averageLoss', 'updates'])
  })

  it('draws the newest predictor of an algorithm that predicts with the average in its own colour, with dashes', () => {
    const [{ svg }, losses] = figuresOf(groupRuns(['serial', 'admb'].map(algorithm => run({ algorithm }, 5))))
    const strokesOf = (text: string) =>
      [...text.matchAll(/fill="none" stroke="([^"]+)" stroke-width="2"( stroke-dasharray="[^"]+")?\/><text/g)].map(
        ([, paint, dash]) => ({ paint, isDashed: dash !== undefined })
      )
    const [serial, paper, newest] = strokesOf(svg)
    assert.deepEqual([serial.isDashed, paper.isDashed, newest.isDashed], [false, false, true])
    assert.deepEqual([paper.paint === newest.paint, paper.paint === serial.paint], [true, false])
    assert.equal(strokesOf(losses.svg).length, 2)
  })

  it('tells lines apart that lie on each other: each has a shape of its own, at inputs of its own', () => {
    const names = ['serial', 'isolated', 'dmb', 'mawo', 'mawo-election', 'mawo-database', 'admb', 'admb-sender']
    const runs = names.map(algorithm => {
      const one = run({ algorithm }, 5)
      const curve = Array.from({ length: 30 }, (_, i) => ({ ...one.result.curve[0], inputs: 100 * (i + 1) }))
      return { ...one, result: { ...one.result, curve } }
    })
    const [, { svg }] = figuresOf(groupRuns(runs))
    // A mark is a shape with a fill at its place; the key has one of each as well.
    const found = [
      ...svg.matchAll(
        /<g transform="translate\(([\d.]+),([\d.]+)\)"><path d="([^"]+)" fill="([^"]+)"\/>(?:<path [^>]*fill="none"[^>]*\/>)?(<text)?/g
      )
    ]
    const key = found.filter(([, , , , , label]) => label !== undefined)
    assert.equal(key.length, 8)
    assert.equal(new Set(key.map(([, , , shape]) => shape)).size, 8)
    assert.equal(new Set(key.map(([, , , , fill]) => fill)).size, 8)
    const marks = found.filter(([, , , , , label]) => label === undefined)
    for (const [, , , shape, fill] of key) {
      const own = marks.filter(mark => mark[3] === shape)
      assert.ok(own.length >= 3 && own.every(mark => mark[4] === fill), shape)
    }
    assert.equal(new Set(marks.map(([, x]) => x)).size, marks.length)
  })

  it('lists the lines that a logarithmic axis cannot show', () => {
    const groups = groupRuns([run({ batch: 8 }, 5), run({ batch: 9 }, -1)])
    const [regret] = figuresOf(groups)
    assert.match(regret.caption, /Not shown, because never above zero: 9/)
    assert.ok(!figuresOf(groups).some(({ name }) => name === 'bytes'))
  })

  it('compares with the serial run on the same scenario only', () => {
    const groups = groupRuns([
      run({ algorithm: 'serial', latency: 1 }, 10),
      run({ algorithm: 'admb', latency: 1 }, 15),
      run({ algorithm: 'admb', latency: 9 }, 30)
    ])
    const { heads, rows } = summarise(groups)
    const at = heads.findIndex(({ text }) => text === '× serial')
    assert.deepEqual(
      rows.map(({ cells }) => cells[at].text),
      ['–', '1.50', '–']
    )
  })

  it('summarises bounds and violations', () => {
    const one = run({ batch: 8 }, 5)
    const with_ = (values: object) => groupRuns([{ ...one, result: { ...one.result, ...values } }])
    const text = (values: object) =>
      summarise(with_(values))
        .rows[0].cells.map(cell => cell.text)
        .join(' | ')
    assert.match(text({ bound: 6, boundHolds: true }), /6 ✓ holds/)
    assert.match(text({ bound: 9, boundHolds: true, boundIsVacuous: true }), /9 vacuous/)
    assert.match(text({ violations: ['x'] }), / \| 1$/)
    const boundTerms = { D: 1, L: 2, sigma: 3, b: 8, nu: 16, smoothness: 5, deviation: 6, informativeFrom: 7 }
    const { rows, terms } = summarise(with_({ bound: 4, boundHolds: false, boundTerms }))
    assert.deepEqual(terms.length, 1)
    assert.match(terms[0], /ν 16; 5 from L and 6 from σ/)
    assert.ok(rows[0].cells.some(({ text, tone }) => /exceeded/.test(text) && tone === 'bad'))
  })

  it('marks varied keys and keys that differ from the default', () => {
    const entries = scenarioEntries([run({ batch: 8 }, 1), run({ batch: 9 }, 1)])
    const of = (key: string) => entries.find(entry => entry.key === key)
    assert.deepEqual(of('batch'), { key: 'batch', values: [8, 9], isVaried: true, isDefault: false })
    assert.equal(of('nodes')?.isDefault, false)
    assert.equal(of('latency')?.isDefault, true)
  })

  it('computes mean, deviation and extremes', () => {
    assert.deepEqual(spreadOf([1, 2, 3]), { mean: 2, deviation: 1, least: 1, most: 3 })
    assert.deepEqual(spreadOf([4]), { mean: 4, deviation: 0, least: 4, most: 4 })
  })
})
