/**
 * Runs the commands of the README and of the pages on the network's page, the simulator, regret and HTTP as written, those of
 * the simulator with shorter runs: blocks marked `run`, one after another.
 */
import assert from 'node:assert/strict'
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CommandSandbox, hasCurl, httpPort, untilStatus } from '../support/command-sandbox.js'
import { blocks } from '../support/documents.js'
import { referenceOf } from '../support/l2l/checkpoints.js'
import { hasPython, PYTHON } from '../support/python.js'

describe('the documents', function () {
  this.timeout(300_000)
  let place: CommandSandbox
  before(() => {
    place = new CommandSandbox()
  })
  afterEach(() => place.kill())
  after(() => place.remove())

  const run = (commands: string) => place.run(commands)

  it('README and training: the commands work as written', () => {
    const printed = [...blocks('run'), ...blocks('train run', 'docs/guides/train.md')].map(run).join('\n')
    const accuracies = [...printed.matchAll(/accuracy +([\d.]+) %/g)].map(match => Number(match[1]))
    assert.equal(accuracies.length, 5)
    assert.ok(Math.min(...accuracies) > 70, printed)
  })

  it('README: two peers find each other', async () => {
    const [first, second] = blocks('peers')[0].split('\n')
    const address = /--peer (\S+)/.exec(await place.start(first))?.[1] as string
    // On this machine both peers have the same working directory.
    const port = httpPort(await place.start(second.replace(/\/ip4\S+/, address).replace('--dir state', '--dir state2')))
    await untilStatus(port, ({ neighbours }) => neighbours.length > 0)
    assert.match(run(`npx admb status --http 127.0.0.1:${port}`), /neighbours +12D3KooW/)
    await place.interrupt()
  })

  it('the page: the commands work as written', async function () {
    if (!hasCurl()) this.skip()
    const port = httpPort(await place.start(`${blocks('page peer', 'docs/guides/page.md')[0]} --http 0`))
    const events = blocks('page events', 'docs/guides/page.md')[0].replace(':7280', `:${port}`)
    assert.match(run(`${events} -s | head -n 4`), /event: snapshot/)
  })

  it('the simulator: the commands work as written', () => {
    const shorter = (text: string) => text.replaceAll(/inputs=\d{5}/g, 'inputs=500').replace('--runs 100', '--runs 4')
    const printed = blocks('run', 'docs/reference/simulator.md')
      .map(text => run(shorter(text)))
      .join('\n')
    assert.match(printed, /4 runs, no violation/)
    assert.match(printed, /admb-sender .*%/)
  })

  it('data: the commands work as written', () => {
    const page = 'docs/reference/schema.md'
    const guide = 'docs/guides/data.md'
    const [tried] = blocks('data try', page).map(run)
    const summary = /data {12}label "bought": classes no, yes; 2 numbers, 1 category/
    assert.match(tried, summary)
    assert.match(run(blocks('data schema', page)[0]), /accuracy +[78]/)
    assert.match(
      run(blocks('data predict', guide)[0]),
      /^yes 0\.9\d+\nno 0\.\d+\nerror: 4:12: "old" in the numeric column/
    )
    assert.match(run(blocks('data dialect', guide)[0]), summary)
    assert.match(run(blocks('data parquet', guide)[0]), summary)
    const tokenized = run(blocks('data tokenizer', page)[0])
    assert.match(tokenized, /wrote tokenizer\.json: \d+ tokens from 300 texts, 0\.\d+ per character/)
    assert.match(tokenized, /accuracy/)
    assert.match(run(blocks('data weight', page)[0]), /weight +8\n(.*\n)*A1 \w+ 0\.\d+\nA2 /)
    assert.match(run(blocks('data balanced', page)[0]), /inputs +4\n/)
    assert.match(run(blocks('data classes', page)[0]), /\nelm 0\.\d+\n$/)
    const [derived] = blocks('data derived', page).map(run)
    assert.match(derived, /1 number, 1 category, 1 interaction/)
    assert.ok(Math.abs(Number(derived.trim().split('\n').at(-1)) - 172.5) < 20, derived)
  })

  it('HTTP: roles and HTTPS work as written', async function () {
    const block = (name: string) => blocks(`http ${name}`, 'docs/reference/http.md')[0]
    if (!hasCurl()) this.skip()
    run(block('roles'))
    const port = httpPort(await place.start(`${block('roles-peer')} --http 0`))
    const here = block('roles-run').replace('status', `status --http ${port}`).replace(':7280', `:${port}`)
    assert.match(run(here), /inputs +0\n[\s\S]*"label":"no"/)
    assert.match(run(here.replaceAll('predict.token', 'read.token')), /ERR_HTTP_ROLE/)
    try {
      run(block('certificate'))
    } catch {
      console.log('      openssl is not installed: skipped')
      this.skip()
    }
    const secure = httpPort(await place.start(`${block('tls-peer')} --http 0`))
    const printed = run(block('tls-run').replaceAll(':7280', `:${secure}`))
    assert.match(printed, /inputs +0\n[\s\S]*admb_inputs_total 0/)
  })

  it('models: weights of linear models work as written', () => {
    const printed = run(blocks('models linear', 'docs/reference/models.md')[0])
    assert.match(
      printed,
      /"constant":-?[\d.]+,\n"weights":\[\n\{"feature":"age","index":1,"weight":[\d.]+\},\n\{"feature":"income",[\s\S]*accuracy +[78]/
    )
  })

  it('regret: the commands work as written', () => {
    const printed = blocks('run', 'docs/results/regret.md').map(run)
    const regrets = printed.slice(0, 2).map(text => Number(/regret {10}([\d.]+) /.exec(text)?.[1]))
    assert.ok(regrets[0] > 0, printed[0])
    assert.equal(regrets[1], regrets[0])
    assert.match(printed[2], /comparator +the best predictor in hindsight/)
    assert.match(printed[3], /\(Theorem 1\): holds\nits terms +D 1\.414/)
  })

  it('HTTP: the commands work as written', async function () {
    if (!hasCurl()) this.skip()
    run(blocks('http token', 'docs/reference/http.md')[0])
    const port = httpPort(
      await place.start(`${blocks('http peer', 'docs/reference/http.md')[0]} --http 0 --label-delay 2h`)
    )
    const answer = run(blocks('http run', 'docs/reference/http.md')[0].replaceAll(':7280', `:${port}`))
    assert.match(answer, /"label":"yes"/)
    assert.match(answer, /admb_inputs_total \d/)
    const keyed = () => run(blocks('http key', 'docs/reference/http.md')[0].replaceAll(':7280', `:${port}`))
    assert.equal(keyed(), keyed())
    const late = run(blocks('http late', 'docs/reference/http.md')[0].replaceAll(':7280', `:${port}`))
    assert.match(late, /"label":"yes","scores":\[\S+\],"id":"1-1"/)
    assert.ok(readdirSync(place.folder).some(name => /^admb-logistic-\d+-.*\.safetensors$/.test(name)))
  })

  it('fine-tuning: the commands work as written', async () => {
    const page = 'docs/tutorials/fine-tuning.md'
    const reference = referenceOf('bert')
    cpSync(reference.folder, join(place.folder, 'bert'), { recursive: true })
    const rows = Array.from({ length: 32 }, (_, i) => [...(reference.texts?.[i % 4] ?? []), i % 2 ? 'same' : 'other'])
    const table = (columns: number) =>
      [['first', 'second', 'relation'], ...rows].map(row => `${row.slice(0, columns).join('\t')}\n`).join('')
    writeFileSync(join(place.folder, 'pairs.tsv'), table(3))
    writeFileSync(join(place.folder, 'new.tsv'), table(2))
    const lossOf = (printed: string) => /\nloss +([\d.]+)/.exec(printed)?.[1]
    const tuned = run(blocks('finetuning train', page)[0])
    assert.ok(Number(lossOf(tuned)) < 0.6, tuned)
    assert.match(tuned, /\n(same|other) 0\.\d+\n/)
    const exported = run(blocks('finetuning export', page)[0])
    assert.equal(lossOf(exported), lossOf(tuned))
    if (hasPython('transformers, torch')) {
      writeFileSync(join(place.folder, 'load.py'), pythonBlock(page))
      assert.match(run(`${PYTHON} load.py`), /^(same|other|unclear)\n$/)
    }
    const [, , before, continued, merged] = run(blocks('finetuning lora', page)[0])
      .split(/^inputs /m)
      .map(printed => `\n${printed}`)
    assert.ok(Number(lossOf(before)) < 0.6, before)
    assert.match(continued, /average loss/)
    assert.ok(Number(lossOf(merged)) < Number(lossOf(before)), merged)
    if (hasPython('transformers, torch')) {
      writeFileSync(join(place.folder, 'load.py'), pythonBlock(page).replace('exported', 'merged'))
      assert.match(run(`${PYTHON} load.py`), /^(same|other|unclear)\n$/)
    }
    for (const [name, evaluate] of [
      ['finetuning peers', 'npx admb eval --dir second'],
      ['finetuning lora peers', 'npx admb eval --dir two --weights bert']
    ]) {
      const [first, second] = blocks(name, page)[0].split('\n')
      const address = /--peer (\S+)/.exec(await place.start(`${first} --http 0`))?.[1] as string
      const port = httpPort(await place.start(`${second.replace(/\/ip4\S+/, address)} --http 0`))
      await untilStatus(port, ({ neighbours, updates }) => neighbours.length > 0 && updates > 0)
      assert.match(run(`npx admb status --http 127.0.0.1:${port}`), /predictor +[1-9]\d* updates/)
      await place.interrupt()
      assert.match(run(`${evaluate} --data pairs.tsv`), /accuracy/)
    }
  })

  it('data: a peer continues in its source', async () => {
    const [prepare, first] = blocks('data from', 'docs/guides/sources.md')[0].split('\n')
    run(prepare)
    const inputs = async (command: string, count: number) => {
      const port = httpPort(await place.start(`${command} --http 0`))
      await untilStatus(port, status => status.inputs === count)
    }
    await inputs(first, 3)
    await place.interrupt()
    await inputs(blocks('data follow', 'docs/guides/sources.md')[0], 3)
    run("printf '4,yes\\n5,no\\n' >> shop.csv")
    await place.interrupt()
    await inputs(first, 5)
    await place.interrupt()
  })
})

/** The page's block of Python. */
function pythonBlock(page: string): string {
  return /```python\n([\s\S]*?)```/.exec(readFileSync(page, 'utf8'))?.[1] as string
}
