/** The page's logic, without a browser. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { linearTicks, logLabels, logTicks, tickLabels } from '../../../src/numeric/ticks.js'
import {
  formatAge,
  formatBudget,
  formatBytes,
  formatCount,
  formatDuration,
  formatError,
  formatLoss,
  formatR2,
  formatRate,
  listOf,
  markLetter,
  measureOf,
  pooledR2
} from '../../../src/page/format.js'
import { EventParser, NetworkState } from '../../../src/page/network-state.js'
import { aligned, curveLine, inputsOf, level, secondsSince } from '../../../src/page/plot-data.js'
import {
  describeEvent,
  describeMeasure,
  describeNetwork,
  describePeer,
  describeSchema,
  describeWindows,
  isNear,
  joinCommand
} from '../../../src/page/sentences.js'
import { hiddenBehind, layOut, pathTo } from '../../../src/page/tree-layout.js'
import { NetworkView, type PeerRow } from '../../../src/view/index.js'
import { A, B, C, status } from '../../support/statuses.js'

function row(id: string, given: Partial<PeerRow> = {}): PeerRow {
  const { version: _v, interval: _i, trail: _t, leaving: _l, ...fields } = status()
  return { id, ...fields, firstSeen: 1, lastSeen: 1, alive: true, left: false, group: 0, ...given }
}

const table = (...rows: PeerRow[]) => new Map(rows.map(one => [one.id, one]))

describe('the page formats', () => {
  it('bytes with three digits, rates and times', () => {
    assert.deepEqual([0, 999, 1000, 12_345, 999_600, 1.5e12].map(formatBytes), [
      '0 B',
      '999 B',
      '1.00 kB',
      '12.3 kB',
      '1.00 MB',
      '1.50 TB'
    ])
    assert.deepEqual([0, 0.25, 9.96, 1234].map(formatRate), ['0', '0.3', '10.0', '1,234'])
    assert.equal(formatBudget({ epsilon: 8, spent: 2.341 }), 'ε 2.35 of 8')
    assert.equal(formatBudget({ epsilon: 0.999, spent: 0.9985 }), 'ε 0.999 of 0.999')
    assert.deepEqual([0, 5000, 300_000, 9e6].map(formatAge), ['now', '5 s ago', '5 min ago', '3 h ago'])
    assert.deepEqual([5, 750, 11_100].map(formatDuration), ['0:05', '12:30', '3 h 05'])
  })

  it('losses and errors of any size, without cutting them', () => {
    assert.deepEqual([undefined, 0, 0.32451, 0.00001234, 123.456, 150_688.2856, 1.888e9].map(formatLoss), [
      '–',
      '0.0000',
      '0.3245',
      '0.0000123',
      '123.46',
      '150,688',
      '1.89e9'
    ])
    assert.deepEqual([undefined, 0.8934, -0.25, -1e6].map(formatR2), ['–', '0.893', '−0.250', '< −99'])
  })

  it('lists of bounded length', () => {
    assert.equal(listOf(['a']), 'a')
    assert.equal(listOf(['a', 'b', 'c']), 'a, b and c')
    assert.equal(listOf(['a', 'b', 'c', 'd'], 1000), 'a, b, c and 997 more')
  })

  it('events, with the names of peers', () => {
    const peers = table(row(A, { name: 'cellar' }), row(B))
    const at = { seq: 1, at: 0 }
    assert.match(describeEvent({ ...at, kind: 'lost', peers: [A], count: 1 }, peers), /^cellar stopped responding/)
    assert.match(
      describeEvent({ ...at, kind: 'partitioned', peers: [A, B], count: 2 }, peers),
      /^…3KooWB and cellar are disconnected/
    )
    assert.match(
      describeEvent({ ...at, kind: 'adopted', peers: [B], count: 1, detail: A }, peers),
      /adopted the predictor of cellar$/
    )
    assert.match(
      describeEvent({ ...at, kind: 'refused', peers: [], count: 0, detail: 'batch' }, peers),
      /^a peer was refused: batch$/
    )
  })

  it('the state of the network', () => {
    const describe = (rows: readonly PeerRow[], peers = 0) => {
      const shown = new NetworkState()
      const { network } = new NetworkView().snapshot()
      const groups = [{ group: 0, peers, updates: 7 }]
      shown.reset({
        at: 0,
        network: { ...network, peers, groups },
        peers: rows,
        events: [],
        curves: {},
        references: []
      })
      return describeNetwork(shown)
    }
    assert.equal(describe([]), 'No peers yet')
    assert.equal(describe([row(A, { alive: false, left: true })]), 'All peers have left')
    assert.equal(describe([row(A), row(B)], 2), '2 peers follow one predictor')
    assert.equal(describe([row(A), row(B)], 10_000), '10,000 peers follow one predictor')
    assert.equal(
      describe([row(A), row(B, { group: 1 }), row(C, { alive: false })], 2),
      '2 peers follow 2 predictors, 1 silent'
    )
    const text = describePeer(row(A, { neighbours: [B] }), table(row(A), row(B, { name: 'bee' })), A)
    assert.match(
      text,
      /this peer, predictor A with 1 updates, 10 inputs, loss 0.5000, accuracy 75.0 %, linked with bee$/
    )
  })

  it('the figures of a peer over windows by time', () => {
    const windows = [
      { seconds: 60, inputs: 1, loss: 0.5, accuracy: 1 },
      { seconds: 86_400, inputs: 2000, loss: 0.25, rmse: 3 }
    ]
    assert.equal(
      describeWindows(row(A, { windows }), table(row(A, { name: 'bee' }))),
      'Figures of bee by time: over the last 1m, loss 0.5000, accuracy 100.0 % (1 input); over the last 1d, loss 0.2500, RMSE 3.0000 (2,000 inputs).'
    )
    assert.equal(describeWindows(row(A), table(row(A))), '')
    assert.equal(describeWindows(undefined, table()), '')
  })

  it('what is learned', () => {
    const columns = ['age', 'city', 'income', 'region', 'size'].map(name => ({ name, kind: 'number' }))
    assert.equal(
      describeSchema({ label: { name: 'bought', kind: 'class', names: ['no', 'yes'] }, columns }, 'a.csv'),
      'This peer learns to predict “bought” (no and yes) from age, city, income and 2 more. Data: a.csv.'
    )
    assert.equal(
      describeSchema({ label: { name: 'price', kind: 'number' } }, undefined),
      'This peer learns to predict “price”, a number.'
    )
    assert.equal(
      describeSchema({}, 'play.txt'),
      'This peer learns to predict the next token of a text. Data: play.txt.'
    )
    assert.equal(
      describeSchema({ external: true }, undefined),
      'A program has the model of this peer, and computes its gradients.'
    )
    assert.match(
      describeSchema({ label: { kind: 'class', classes: 10 } }, '-'),
      /the label \(10 classes\)\. Data: standard input\.$/
    )
  })

  it('the error of a regression as RMSE in the unit of its target, and other losses in nats', () => {
    const squared = row(A, { loss: 1.888e9, recent: { inputs: 10, loss: 5e5, rmse: 1000, r2: 0.75 } })
    const measure = measureOf([squared, row(B)])
    assert.equal(measure.name, 'RMSE')
    assert.equal(formatError(measure, squared.loss), '61,449')
    assert.match(describeMeasure(measure, 'price'), /root mean squared error.*in the unit of “price”/)
    assert.match(describePeer(squared, table(squared), undefined), /RMSE 61,449, recent RMSE 1,000/)
    const other = row(A, { recent: { inputs: 10, loss: 7, rmse: 1000 } })
    for (const rows of [[], [row(A)], [other], [squared, other]]) assert.equal(measureOf(rows).name, 'Loss')
    assert.match(describeMeasure(measureOf([]), undefined), /mean loss \(in nats\)/)
    const windows = [{ seconds: 60, inputs: 2, loss: 5e5, rmse: 1000, r2: 0.75 }]
    assert.match(describeWindows({ ...squared, windows }, table(squared)), /1m, RMSE 1,000, R² 0.750 \(2 inputs\)/)
  })

  it('R² of all peers by their errors and deviations', () => {
    const of = (inputs: number, rmse: number, r2?: number) =>
      row(A, { recent: { inputs, loss: rmse ** 2 / 2, rmse, r2 } })
    assert.equal(pooledR2([of(10, 1, 0.5)]), 0.5)
    // Squared errors 10 and 30, squared deviations 20 and 300.
    assert.equal(pooledR2([of(10, 1, 0.5), of(30, 1, 0.9)]), 1 - 40 / 320)
    assert.equal(pooledR2([of(10, 1, 0.5), row(B)]), 0.5)
    for (const rows of [[], [row(A)], [of(10, 1)], [of(10, 0, 1)]]) assert.equal(pooledR2(rows), undefined)
  })

  it('the command with which others join, with an address that they can reach', () => {
    const near = '/ip4/127.0.0.1/tcp/4280/p2p/X'
    const far = '/ip4/192.0.2.7/tcp/4280/p2p/X'
    const label = { name: 'sold for', kind: 'number' } as const
    assert.equal(
      joinCommand([near, far], { label }, 'mine.csv.gz'),
      `npx admb peer --data other.csv.gz --label 'sold for' --peer ${far}`
    )
    assert.equal(joinCommand([near], {}, 'digits'), `npx admb peer --data digits --peer ${near}`)
    assert.equal(
      joinCommand([near], { external: true }, undefined),
      `npx admb peer --learner external --dir state --peer ${near}`
    )
    assert.equal(joinCommand([], {}, 'digits'), undefined)
    assert.deepEqual([near, far, '/ip6/::1/tcp/1/p2p/X', '/dns4/example.org/tcp/1'].map(isNear), [
      true,
      false,
      true,
      false
    ])
  })

  it('a letter for each predictor', () => {
    assert.deepEqual([0, 25, 26, 700].map(markLetter), ['A', 'Z', 'A2', 'Y27'])
  })
})

describe('the part of the tree that is shown', () => {
  const rows = [
    row(A, { neighbours: [B] }),
    row(B, { neighbours: [A, C, 'hidden'], below: 9 }),
    row(C, { neighbours: [B], below: 1 })
  ]

  it('has a path to each peer, and the number of peers behind it that are not shown', () => {
    assert.deepEqual(pathTo(rows, A, C), [B, C])
    assert.deepEqual(pathTo(rows, A, A), [])
    assert.equal(pathTo(rows, A, 'hidden'), undefined)
    assert.deepEqual([...hiddenBehind(rows, A)], [[B, 7]])
  })
})

describe("the tree's layout", () => {
  const random = fc.array(fc.record({ parent: fc.nat(30), alive: fc.boolean(), extra: fc.boolean() }), {
    maxLength: 30
  })

  /** A forest, with some additional edges. */
  function forest(nodes: readonly { parent: number; alive: boolean; extra: boolean }[]): PeerRow[] {
    const rows = nodes.map((node, i) => ({
      ...row(`p${i}`, { alive: node.alive }),
      neighbours: [] as string[]
    }))
    const link = (a: number, b: number) => {
      if (a === b || !rows[a] || !rows[b]) return
      rows[a].neighbours.push(`p${b}`)
      rows[b].neighbours.push(`p${a}`)
    }
    for (const [i, node] of nodes.entries()) {
      if (node.parent < i) link(i, node.parent)
      if (node.extra) link(i, (node.parent * 7) % nodes.length)
    }
    return rows
  }

  it('has one position for every peer, without overlaps', () => {
    fc.assert(
      fc.property(random, nodes => {
        const rows = forest(nodes)
        const { positions, width, height, edges } = layOut(rows, 'p0')
        assert.deepEqual(positions.map(({ id }) => id).sort(), rows.map(({ id }) => id).sort())
        for (const level of new Set(positions.map(({ y }) => y))) {
          const xs = positions.flatMap(({ x, y }) => (y === level ? [x] : [])).sort((a, b) => a - b)
          for (let i = 1; i < xs.length; i++) assert.ok(xs[i] - xs[i - 1] >= 1 - 1e-9, `level ${level}: ${xs}`)
        }
        for (const { x, y } of positions) assert.ok(x >= 0 && x <= width && y >= 0 && y <= height)
        for (const { from, to } of edges) assert.ok([from, to].every(id => rows.find(one => one.id === id)?.alive))
      })
    )
  })

  it('draws a chain vertically, with this peer at the top, and silent peers separately', () => {
    const rows = [
      row(A, { neighbours: [B] }),
      row(B, { neighbours: [A, C] }),
      row(C, { neighbours: [B], alive: false })
    ]
    const { positions, edges } = layOut(rows, B)
    assert.deepEqual(edges, [{ from: A, to: B }])
    assert.deepEqual(
      positions.map(({ id, x, y }) => [id, x, y]),
      [
        [B, 0, 0],
        [A, 0, 1],
        [C, 1, 0]
      ]
    )
  })

  it('supports a path of a thousand peers', () => {
    const id = (i: number) => `p${String(i).padStart(4, '0')}`
    const rows = Array.from({ length: 1000 }, (_, i) => row(id(i), { neighbours: [id(i - 1), id(i + 1)] }))
    assert.equal(layOut(rows, id(0)).height, 999)
  })
})

describe("the page's event parser", () => {
  it('gives the same events for any division of the stream', () => {
    const text =
      'retry: 2000\n\nevent: snapshot\nid: 7\ndata: {"a":1}\n\n: a comment\r\n\ndata: x\r\ndata: y\r\n\r\nevent: none\n\n'
    fc.assert(
      fc.property(fc.array(fc.nat(text.length), { maxLength: 8 }), cuts => {
        const bounds = [0, ...cuts.sort((a, b) => a - b), text.length]
        const parser = new EventParser()
        const events = bounds.slice(1).flatMap((end, i) => parser.push(text.slice(bounds[i], end)))
        assert.deepEqual(events, [
          { event: 'snapshot', data: '{"a":1}' },
          { event: 'message', data: 'x\ny' }
        ])
        assert.deepEqual([parser.lastId, parser.retry], ['7', 2000])
      })
    )
  })

  it('keeps the range of b since it was opened', () => {
    const view = new NetworkView(A)
    const state = new NetworkState()
    for (const [second, batch] of [undefined, 40, 32, 36].entries()) {
      view.receive(A, status({ uptime: second, batch }), 1000 * second)
      if (second === 0) state.reset(view.snapshot())
      else state.apply({ at: 1000 * second, peers: view.snapshot().peers, gone: [], events: [] })
      if (second === 0) assert.equal(state.batches, undefined)
    }
    assert.deepEqual(state.batches, [32, 40])
  })

  it('has the same state after updates as after a snapshot, including curves', () => {
    const view = new NetworkView(A)
    view.receive(A, status(), 1000)
    const state = new NetworkState()
    state.reset(view.snapshot())
    view.subscribe(update => state.apply(JSON.parse(JSON.stringify(update))))
    for (let second = 2; second < 300; second++) {
      view.receive(A, status({ uptime: second, inputs: 10 * second, loss: 1 / second }), 1000 * second)
      if (second === 5) view.receive(B, status(), 1000 * second)
      if (second >= 20 && second < 30) view.receive(B, status({ uptime: second, inputs: 5 * second }), 1000 * second)
      if (second === 35) view.receive(B, status({ uptime: 1, inputs: 160, incarnation: 2, started: 9 }), 35_000)
      view.tick(1000 * second)
    }
    const { peers, events, curves } = view.snapshot()
    assert.deepEqual(state.rows, JSON.parse(JSON.stringify(peers)))
    assert.deepEqual(
      state.events.map(({ seq }) => seq),
      events.map(({ seq }) => seq)
    )
    assert.deepEqual(state.curves.get(A)?.points.at(-1), curves[A].at(-1))
    assert.deepEqual(state.curves.get(B)?.points, curves[B])
    // Away until second 20, and between two runs.
    const away = [
      [5000, 20_000],
      [29_000, 35_000]
    ]
    assert.deepEqual(view.snapshot().absences, { [B]: away })
    assert.deepEqual(state.curves.get(B)?.absences, away)
    const opened = new NetworkState()
    opened.reset(JSON.parse(JSON.stringify(view.snapshot())))
    assert.deepEqual(opened.curves.get(B)?.absences, away)
  })
})

describe('plots', () => {
  it('have short labels on a linear axis, distinct and close to their ticks', () => {
    assert.deepEqual(tickLabels([0, 20_000, 40_000, 60_000]), ['0', '20k', '40k', '60k'])
    assert.deepEqual(tickLabels([0.3, 0.35, 0.4]), ['0.30', '0.35', '0.40'])
    assert.deepEqual(tickLabels([2_000_000, 2_500_000]), ['2.0M', '2.5M'])
    fc.assert(
      fc.property(fc.integer({ min: -6, max: 11 }), fc.constantFrom(1, 2, 5), fc.nat(30), (exponent, digit, first) => {
        const step = digit * 10 ** exponent
        const ticks = [0, 1, 2, 3].map(i => (first + i) * step)
        const labels = tickLabels(ticks)
        assert.equal(new Set(labels).size, ticks.length, labels.join())
        for (const [i, label] of labels.entries()) {
          assert.ok(label.length <= 9, label)
          const [, number, prefix] = /^([\d.e+-]+)([kMGT]?)$/.exec(label) ?? []
          const value = Number(number) * 1000 ** ' kMGT'.indexOf(prefix || ' ')
          assert.ok(Math.abs(value - ticks[i]) <= 0.51 * step, `${label} for ${ticks[i]}`)
        }
      })
    )
  })

  it('have gaps where a peer was away', () => {
    const points = [
      [10, 1000, 0.9, 0.8],
      [20, 2000, 0.8],
      [40, 9000, 0.6, 0.5]
    ] as const
    const absences = [[2000, 9000]] as const
    assert.deepEqual(curveLine({ points, absences }, inputsOf).points, [
      [10, 0.9],
      [20, 0.8],
      [30, null],
      [40, 0.6]
    ])
    assert.deepEqual(curveLine({ points, absences }, secondsSince(1000), true).points, [
      [0, 0.8],
      [4, null],
      [8, 0.5]
    ])
    assert.equal(curveLine({ points, absences: [] }, inputsOf).points.length, 3)
  })

  it('have a line for each peer that keeps its number', () => {
    const view = new NetworkView()
    const state = new NetworkState()
    for (const [at, id] of [A, B, C].entries()) view.receive(id, status(), at)
    state.reset(view.snapshot())
    assert.deepEqual(
      [C, A, B].map(id => state.placeOf(id)),
      [0, 1, 2]
    )
    state.apply({ at: 9, peers: [], gone: [A], events: [] })
    assert.deepEqual(
      [B, C].map(id => state.placeOf(id)),
      [2, 0]
    )
    state.apply({ at: 10, peers: [row('p')], gone: [], events: [] })
    assert.equal(state.placeOf('p'), 1)
  })

  it('have round ticks, and labels that fit', () => {
    assert.deepEqual(logTicks(80, 400), [80, 90, 100, 200, 300, 400])
    assert.deepEqual(logLabels(logTicks(80, 400), 400, formatCount), ['', '', '100', '200', '300', '400'])
    assert.deepEqual(logLabels(logTicks(80, 400), 200, formatCount), ['', '', '100', '200', '', ''])
    assert.deepEqual(logLabels(logTicks(10, 1000), 200, formatCount).filter(Boolean), ['10', '100', '1,000'])
    assert.deepEqual(logTicks(1, 1), [1])
    assert.deepEqual(tickLabels(linearTicks(0.412, 0.688)), ['0.45', '0.50', '0.55', '0.60', '0.65'])
    assert.deepEqual(linearTicks(0, 30), [0, 5, 10, 15, 20, 25, 30])
    assert.deepEqual(linearTicks(3, 3), [3])
  })

  it('align lines to one column of x values without losing points', () => {
    const point = fc.tuple(fc.nat(20), fc.nat(100))
    const line = fc.uniqueArray(point, { selector: ([x]) => x, maxLength: 10 }).map(points => ({
      points: points.sort((a, b) => a[0] - b[0])
    }))
    fc.assert(
      fc.property(fc.array(line, { maxLength: 4 }), lines => {
        const { x, ys } = aligned(lines)
        for (let i = 1; i < x.length; i++) assert.ok(x[i] > x[i - 1])
        for (const [line, { points }] of lines.entries()) {
          const back = x.flatMap((value, i) => (ys[line][i] === undefined ? [] : [[value, ys[line][i]]]))
          assert.deepEqual(back, points)
        }
      })
    )
    assert.deepEqual(
      level(
        {
          name: 'serial',
          points: [
            [1, 2],
            [9, 0.5]
          ]
        },
        0,
        60
      ).points,
      [
        [0, 0.5],
        [60, 0.5]
      ]
    )
  })
})
