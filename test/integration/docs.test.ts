/**
 * The commands of the README and of the pages on the simulator, regret and HTTP, run as they stand there: blocks marked `run` one after another. A page
 * that promises what does not work costs a new user more than no page.
 */
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { blocks } from '../support/documents.js'
import { hasCurl, httpPort, Workplace } from '../support/workplace.js'

describe('the documents', function () {
  this.timeout(300_000)
  let place: Workplace
  before(() => {
    place = new Workplace()
  })
  afterEach(() => place.kill())
  after(() => place.remove())

  const run = (commands: string) => place.run(commands)

  it('have commands that work as written: the README', () => {
    const printed = blocks('run').map(run).join('\n')
    const accuracies = [...printed.matchAll(/accuracy +([\d.]+) %/g)].map(match => Number(match[1]))
    assert.equal(accuracies.length, 3)
    assert.ok(Math.min(...accuracies) > 70, printed)
  })

  it('have commands that work as written: the simulator', () => {
    const printed = blocks('run', 'docs/simulator.md').map(run).join('\n')
    assert.match(printed, /100 runs, no violation/)
    assert.match(printed, /admb-sender .*%/)
  })

  it('have commands that work as written: regret', () => {
    const printed = blocks('run', 'docs/regret.md').map(run)
    const regrets = printed.map(text => Number(/regret {10}([\d.]+) /.exec(text)?.[1]))
    assert.ok(regrets[0] > 0, printed[0])
    assert.equal(regrets[1], regrets[0])
    assert.match(printed[2], /comparator +the best predictor in hindsight/)
  })

  it('have commands that work as written: HTTP', async function () {
    if (!hasCurl()) this.skip()
    run(blocks('http token', 'docs/http.md')[0])
    const port = httpPort(await place.start(`${blocks('http peer', 'docs/http.md')[0]} --http 0`))
    const said = run(blocks('http run', 'docs/http.md')[0].replaceAll(':7280', `:${port}`))
    assert.match(said, /"label":"yes"/)
    assert.match(said, /admb_inputs_total \d/)
    assert.ok(readdirSync(place.folder).some(name => /^admb-logistic-\d+-.*\.safetensors$/.test(name)))
  })
})
