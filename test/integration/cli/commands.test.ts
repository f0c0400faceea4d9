/** Errors of the commands: one line on stderr, and the documented exit code. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { commandNames } from '../../../src/cli/commands/index.js'
import { createRule, type RuleSpec } from '../../../src/learning/index.js'
import { admb, admbProcess, MAIN } from '../../support/admb-command.js'
import { parquetOf } from '../../support/parquet.js'
import { scratchFolder } from '../../support/scratch.js'

describe('a command', function () {
  this.timeout(60_000)
  const dir = scratchFolder()

  async function refuses(args: readonly string[], exitCode: number, line: RegExp, input?: string): Promise<void> {
    const { code, stdout, stderr } = await admb(args, { input })
    assert.equal(code, exitCode, `${args.join(' ')}: ${stderr}`)
    assert.match(stderr, line)
    assert.match(stderr, /^admb: [^\n]+\n$/, args.join(' '))
    assert.equal(stdout, '')
  }

  async function file(name: string, content: string | Uint8Array): Promise<string> {
    const path = join(dir, name)
    await writeFile(path, content)
    return path
  }

  it('loads TensorFlow.js for networks only', async () => {
    const print = `import m from 'node:module'; process.on('exit', () => console.error(Object.keys(m._cache).join()))`
    const env = { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(print)}` }
    const loads = async (model: string) => {
      const { code, stderr } = await admbProcess(['train', '--data', 'digits', '--model', model], { env })
      assert.equal(code, 0, stderr)
      return /tfjs/.test(stderr)
    }
    assert.deepEqual([await loads('softmax'), await loads('mlp')], [false, true])
  })

  it('suggests the nearest name for an unknown command or option', async () => {
    await refuses(['trian'], 2, /unknown command 'trian'.*train/)
    await refuses(['train', '--bach', '3'], 2, /unknown option '--bach'.*--batch/)
    await refuses(['train', 'data.csv'], 2, /takes no argument 'data\.csv': give inputs as --data data\.csv/)
    await refuses(['status', 'now'], 2, /admb status takes no argument 'now': remove it/)
    await refuses(['data.csv'], 2, /unknown command 'data\.csv': .*admb train --data data\.csv/)
    await refuses(['train', '--target-scale', '3'], 2, /MEAN:SD with SD above 0/)
    await refuses(['keygen', 'network'], 2, /required option '--out <file>'/)
  })

  it('reports the expected values for an invalid one', async () => {
    const wrong: [option: string, value: string, line: RegExp][] = [
      ['--batch', '0', /whole number of at least 1/],
      ['--batch', '1.5', /whole number/],
      ['--hash-bits', '31', /from 1 to 30/],
      ['--l2', '-1', /number of at least 0/],
      ['--l2', 'nan', /number of at least 0/],
      ['--rate', '0', /number above 0/],
      ['--shard', '3/2', /I\/N with I from 1 to N/],
      ['--rule', 'adagrat', /unknown rule 'adagrat'; expected one of .*adagrad/],
      ['--rule', 'adagrad,rate', /adagrad,key=value/],
      ['--average', 'median', /unknown average 'median'; expected one of/],
      ['--model', 'svm', /one of logistic, linear, hinge, softmax/],
      ['--format', 'arff', /one of libsvm, vw/],
      ['--scale', 'robust', /It must be one of none, standard/]
    ]
    for (const [option, value, line] of wrong) {
      await refuses(['peer', '--data', 'digits', `${option}=${value}`], 2, line)
    }
    await refuses(['peer', '--data', 'digits', '--http', 'here'], 2, /--http here: give HOST:PORT, PORT or off/)
    await refuses(['peer', '--data', 'digits', '--rule', 'adagrad,rat=1'], 2, /rat/)
  })

  it('reads a configuration file, and reports every error in it', async () => {
    const config = (text: string) => file('config.yaml', text).then(path => ['train', '--config', path])
    await refuses(await config('bacth: 3\n'), 2, /config\.yaml: unknown key bacth; did you mean batch\?/)
    await refuses(await config('batch: many\n'), 2, /config\.yaml: batch: It must be a whole number/)
    await refuses(await config('batch: {b: 3}\n'), 2, /batch must be a value or a list/)
    await refuses(await config('strict: 1\n'), 2, /strict must be true or false, not 1/)
    await refuses(await config('batch: [\n'), 2, /is not YAML/)
    await refuses(await config('- batch\n'), 2, /must hold options as key: value/)
    await refuses(['train', '--config', join(dir, 'none.yaml')], 2, /cannot read .*none\.yaml \(ENOENT\)/)
    const data = await file('named.csv', 'x,y,label\n1,2,b\n2,1,a\n')
    const good = await config(`data: ${data}\nclass-names: [a, b]\nignore: [y]\njson: true\nbatch: 2\n`)
    const { code, stdout, stderr } = await admb([...good, '--batch', '1'])
    assert.equal(code, 0, stderr)
    assert.equal(JSON.parse(stdout).updates, 2, 'a flag overrides the file')
  })

  it('reports data that is missing or of another format', async () => {
    await refuses(['train'], 2, /no data: give --data/)
    await refuses(['train', '--data', join(dir, 'none.svm')], 1, /none\.svm: no such file/)
    await mkdir(join(dir, 'folder.csv'))
    await refuses(['train', '--data', join(dir, 'folder.csv')], 1, /is a directory/)
    await refuses(['train', '--data', await file('data.txt', '')], 1, /does not determine the format/)
    await refuses(['train', '--data', '-'], 1, /the format of standard input is unknown/)
    await refuses(['train', '--data', await file('a.csv', 'x,y\n1,2\n')], 1, /no label column "label"/)
    await refuses(['train', '--data', await file('b.idx3-ubyte', 'nonsense'), '--labels', MAIN], 1, /magic number/)
    await refuses(['eval', '--dir', join(dir, 'none'), '--data', 'digits'], 1, /contains no admb state/)
    await refuses(['eval', '--data', 'digits'], 2, /no predictor: give --dir/)
    await refuses(['status', '--http', '127.0.0.1:1'], 1, /no peer at http:\/\/127\.0\.0\.1:1/)
    await refuses(['peer', '--data', '-', '--format', 'libsvm'], 2, /number of features must be known/)
  })

  it('skips inputs that are malformed or of an unknown class, or stops at the first', async () => {
    const lines = ['1 1:1', '0 2:1', '7 1:1', '1 1:nan', '0 1:inf', '1 x:1', '1 2:1', ...new Array(20).fill('5 1:1')]
    const data = await file('mixed.svm', `${lines.join('\n')}\n`)
    const train = ['train', '--data', data, '--class-names', '0,1']
    const { code, stdout, stderr } = await admb([...train, '--json', '--skip-limit', '0.9'])
    assert.equal(code, 0, stderr)
    const { inputs, skipped, averageLoss } = JSON.parse(stdout)
    assert.deepEqual({ inputs, skipped }, { inputs: 3, skipped: 24 })
    assert.ok(Number.isFinite(averageLoss))
    const warnings = stderr.trim().split('\n')
    assert.equal(warnings.length, 11)
    assert.match(warnings[0], /mixed\.svm:3:1: label "7" is not among the classes/)
    assert.match(warnings[10], /further malformed inputs are only counted/)
    await refuses([...train, '--strict'], 1, /mixed\.svm:3:1: label "7"/)
  })

  it('fails if too many inputs are skipped, with the most frequent reason, and stores what was learned', async () => {
    const rows = Array.from({ length: 260 }, (_, i) => `${i % 26} 1:${i}`)
    const data = await file('letters.svm', `${rows.join('\n')}\n`)
    const model = join(dir, 'letters')
    const { code, stdout, stderr } = await admb([
      'train',
      '--data',
      data,
      '--dir',
      model,
      '--json',
      '--class-names',
      '0,1'
    ])
    assert.equal(code, 1)
    assert.equal(JSON.parse(stdout).inputs, 20)
    assert.match(
      stderr,
      /letters\.svm: 240 of 260 inputs \(92\.3 %\) were skipped, 240 of them like .*letters\.svm:3:1: label "2" is not among the classes.*--skip-limit 0\.93 \(ERR_SKIPPED_INPUTS\)/
    )
    const scored = await admb(['eval', '--dir', model, '--data', data])
    assert.equal(scored.code, 1)
    assert.match(scored.stderr, /240 of 260 inputs .*ERR_SKIPPED_INPUTS/)
    assert.match((await admb(['train', '--data', data])).stdout, /data +label: 26 classes by number/)
    await refuses(['train', '--data', data, '--model', 'logistic'], 1, /label has 26 classes .*, and the model 2/)
    const allowed = await admb(['eval', '--dir', model, '--data', data, '--skip-limit', '0.93'])
    assert.equal(allowed.code, 0, allowed.stderr)
    await refuses(['train', '--data', data, '--skip-limit', '2'], 2, /share from 0 to 1/)
    await refuses(['train', '--data', data, '--data', 'b.csv'], 2, /given twice/)
  })

  it('fails if nothing can be learned or scored', async () => {
    const empty = await file('empty.svm', '')
    await refuses(['train', '--data', empty], 1, /empty\.svm: there are no inputs.*ERR_NO_INPUTS/)
    const names = await file('names.csv', 'size,label\n1,yes\n2,no\n')
    const { code, stderr } = await admb(['train', '--data', names, '--class-names', 'ja,nein'])
    assert.equal(code, 1)
    assert.match(stderr, /names\.csv: all 2 inputs were skipped.*label "yes" is not among.*ERR_NO_INPUTS/)
    const model = join(dir, 'small')
    const data = await file('small.svm', '1 1:1\n0 1:2\n')
    assert.equal((await admb(['train', '--data', data, '--dir', model])).code, 0)
    await refuses(['eval', '--dir', model, '--data', empty], 1, /empty\.svm: there are no inputs/)
  })

  it('predicts unlabelled inputs in every text format, and rejects those that do not fit the model', async () => {
    const model = join(dir, 'model')
    const rows = Array.from({ length: 200 }, (_, i) => `${i % 2} ${1 + (i % 2)}:1`).join('\n')
    const trained = await admb(['train', '--data', '-', '--format', 'libsvm', '--dimension', '2', '--dir', model], {
      input: rows
    })
    assert.equal(trained.code, 0, trained.stderr)
    const inputs: [format: string, text: string][] = [
      ['libsvm', '2:1\n'],
      ['csv', 'a,b\n0,1\n'],
      ['jsonl', '{"features": [0, 1]}\n'],
      ['jsonl', '{"features": {"1": 1}}\n']
    ]
    for (const [format, text] of inputs) {
      const { code, stdout, stderr } = await admb(['predict', '--dir', model, '--data', '-', '--format', format], {
        input: text
      })
      assert.equal(code, 0, stderr)
      assert.match(stdout, /^1 0\.\d{4}\n$/, format)
    }
    await refuses(
      ['predict', '--dir', model, '--data', '-', '--format', 'vw'],
      2,
      /does not hash its features/,
      '| a\n'
    )
    await refuses(['eval', '--dir', model, '--data', 'digits:test'], 2, /has 785 features, the model 3/)
    await refuses(['train', '--data', 'digits', '--dir', model], 2, /has 785 features, the model 3/)
    await refuses(
      ['train', '--data', await file('again.svm', rows), '--dir', model, '--rule', 'adam'],
      1,
      /contains a predictor of another model \(rule .*adagrad.* stored, .*adam.* given\)/
    )
    for (const [name, text] of [
      ['named.vw', '1 | red big\n0 | blue small\n'],
      ['named.jsonl', '{"label": 1, "colour": "red"}\n{"label": 0, "colour": "blue"}\n']
    ]) {
      const data = await file(name, text.repeat(50))
      const hashed = join(dir, `${name}.model`)
      assert.equal((await admb(['train', '--data', data, '--dir', hashed])).code, 0)
      const { code, stdout, stderr } = await admb(['eval', '--dir', hashed, '--data', data, '--json'])
      assert.equal(code, 0, stderr)
      assert.equal(JSON.parse(stdout).accuracy, 1)
    }
  })

  it('trains a network on text, stores it, and scores and predicts with it', async () => {
    const model = await file('tiny.yaml', 'model: gpt\nwidth: 16\nlayers: 1\nheads: 2\n')
    const text = await file('rhyme.txt', 'round and round the garden '.repeat(200))
    const stored = join(dir, 'rhymes')
    const shared = ['--backend', 'wasm', '--microbatch', '4']
    const learn = ['train', '--model', model, '--data', text, '--length', '16', '--passes', '3', ...shared]
    const flags = [
      '--rule',
      'adam,step=0.01',
      '--batch',
      '8',
      '--schedule',
      'l2l-p',
      '--stash',
      'host',
      '--dir',
      stored
    ]
    const trained = await admb([...learn, ...flags, '--json'])
    assert.equal(trained.code, 0, trained.stderr)
    const { relay, device } = JSON.parse(trained.stdout)
    assert.match(device, /^wasm works/)
    assert.ok(relay.steps > 100 && relay.devicePeakBytes > 0 && relay.dropped === 0)
    const scored = await admb(['eval', '--dir', stored, '--data', text, '--json', ...shared])
    assert.equal(scored.code, 0, scored.stderr)
    assert.ok(JSON.parse(scored.stdout).accuracy > 0.8, scored.stdout)
    await refuses(['eval', '--dir', stored, '--data', join(dir, 'none.txt')], 1, /none\.txt: no such file/)
    await refuses(['train', '--model', 'gpt', '--data', join(dir, 'none.txt')], 1, /none\.txt: no such file/)
  })

  it('learns labelled texts, and reports the line of a malformed one', async () => {
    const model = await file('encoder.yaml', 'model: transformer\nwidth: 16\nlayers: 1\nheads: 2\n')
    const lines = Array.from({ length: 200 }, (_, i) =>
      JSON.stringify(i % 2 ? { label: 'fruit', text: 'apple pear plum' } : { label: 'tool', text: 'hammer saw drill' })
    )
    const data = await file('things.jsonl', lines.join('\n'))
    const flags = ['--length', '16', '--batch', '8', '--predict-with', 'current', '--json']
    const trained = await admb(['train', '--model', model, '--data', data, ...flags])
    assert.equal(trained.code, 0, trained.stderr)
    assert.ok(JSON.parse(trained.stdout).accuracy > 0.8, trained.stdout)
    const broken = await file('broken.jsonl', `${lines[0]}\n{"label": 1\n`)
    await refuses(['train', '--model', model, '--data', broken], 2, /broken\.jsonl:2: expected a line such as/)
  })

  it('learns texts in CSV, in any columns, and predicts class names for rows without a label', async () => {
    const model = await file('small-encoder.yaml', 'model: transformer\nwidth: 16\nlayers: 1\nheads: 2\n')
    const rows = Array.from({ length: 200 }, (_, i) => [
      i % 2 ? 'sweet pear and plum' : 'a hammer and a saw',
      `from aisle ${i}, today only`,
      i % 2 ? 'fruit' : 'tool'
    ])
    const data = await file('shop.csv', `title;description;kind\n${rows.map(row => row.join(';')).join('\n')}\n`)
    const stored = join(dir, 'shop')
    const options = ['--label', 'kind', '--length', '24', '--batch', '8', '--passes', '4']
    const trained = await admb(['train', '--model', model, '--data', data, ...options, '--dir', stored, '--json'])
    assert.equal(trained.code, 0, trained.stderr)
    const unlabelled = await file('new.csv', 'description,title\n"from aisle 3",sweet pear\nx,a saw\n')
    const serving = ['--predict-with', 'current']
    const predicted = await admb(['predict', '--dir', stored, '--data', unlabelled, ...serving])
    assert.match(predicted.stdout, /^fruit 0\.\d+\ntool 0\.\d+\n$/, predicted.stderr)
    const scored = await admb(['eval', '--dir', stored, '--data', data, '--json', ...serving])
    assert.ok(JSON.parse(scored.stdout).accuracy > 0.9, scored.stdout + scored.stderr)
    const table = ['title', 'description', 'kind'].map((name, i) => ({ name, data: rows.map(row => row[i]) }))
    const parquet = await file('shop.parquet', parquetOf(table))
    const same = await admb(['eval', '--dir', stored, '--data', parquet, '--json', ...serving])
    assert.equal(JSON.parse(same.stdout).accuracy, JSON.parse(scored.stdout).accuracy, same.stderr)
    const numbers = await file('numbers.csv', 'a,b,label\n1,2,x\n3,4,y\n')
    await refuses(['train', '--model', model, '--data', numbers], 2, /none of a, b is a text/)
    const short = await file('short.csv', 'text,label\nsome words,x,y\n')
    await refuses(['train', '--model', model, '--data', short], 2, /short\.csv:2: 3 fields, expected 2/)
  })

  it('trains tokenizers, and networks with them', async () => {
    const model = await file('piece-encoder.yaml', 'model: transformer\nwidth: 16\nlayers: 1\nheads: 2\n')
    const rows = Array.from(
      { length: 200 },
      (_, i) => `${i % 2 ? 'a sweet Pear' : 'a heavy Hammer'},${i % 2 ? 'fruit' : 'tool'}\n`
    )
    const data = await file('pieces.csv', `text,label\n${rows.join('')}`)
    const out = join(dir, 'tokenizer.json')
    const train = ['tokenizer', 'train', '--data', data, '--size', '300', '--out', out]
    const made = await admb([...train, '--kind', 'wordpiece', '--json'])
    assert.equal(made.code, 0, made.stderr)
    const { vocabulary, texts } = JSON.parse(made.stdout)
    assert.ok(vocabulary > 20 && vocabulary <= 300, made.stdout)
    assert.equal(texts, 200)
    const options = ['--model', model, '--data', data, '--length', '8', '--batch', '8', '--predict-with', 'current']
    const accuracies = await Promise.all(
      [out, 'wordpiece:300', 'bpe:300'].map(async tokenizer => {
        const { stdout, stderr } = await admb(['train', ...options, '--tokenizer', tokenizer, '--json'])
        assert.equal(stderr.includes('admb:'), false, stderr)
        return JSON.parse(stdout).accuracy
      })
    )
    assert.equal(accuracies[0], accuracies[1])
    assert.ok(Math.min(...accuracies) > 0.8, `${accuracies}`)
    await refuses([...train, '--size', '20'], 2, /--size .*257/)
    await refuses(
      ['train', ...options, '--tokenizer', 'words:9'],
      2,
      /unknown tokenizer "words": give a tokenizer\.json/
    )
    await refuses(['train', ...options, '--tokenizer', data], 2, /pieces\.csv is not a valid tokenizer\.json/)
    await refuses(['train', ...options, '--tokenizer', 'none.json'], 1, /none\.json: no such file/)
  })

  it('names the layer that does not fit on the device, and plans a model that fits', async () => {
    // In their own processes: the limit includes what other tests of this process have left on the device.
    const fails = (args: readonly string[], exitCode: number, line: RegExp) => refuses(args, exitCode, line, '')
    const small = ['--data', 'digits', '--device-memory', '100KB', '--backend', 'wasm']
    await fails(
      ['train', '--model', 'mlp', ...small],
      1,
      /layer hidden0 needs at least .* --device-memory allows 100\.0 kB/
    )
    await fails(['plan', 'mlp', ...small], 1, /layer hidden0 needs at least .*use --device-memory [\d.]+[kM]B or more/)
    const whole = ['plan', 'mlp', '--data', 'digits', '--batch', '1000', '--schedule', 'baseline']
    await fails(
      [...whole, '--device-memory', '3MB'],
      1,
      /a step with these options needs at least .*allows 3\.0 MB: use --device-memory [\d.]+MB or more, or --schedule auto/
    )
    const conflict = ['--schedule', 'baseline-ag,stash=host']
    await fails(['plan', 'mlp', '--data', 'digits', ...conflict], 2, /does not support --stash host; omit it/)
    await fails(['plan', 'softmax', '--data', 'digits'], 2, /softmax is a linear model/)
    await fails(['plan'], 2, /no network to plan: give a model .*, or --weights FOLDER/)
    await fails(['train', '--model', 'mpl', '--data', 'digits'], 2, /must be one of .*mlp.*YAML/)
    const baseline = ['--schedule', 'baseline', '--microbatch', '4']
    await fails(['train', '--model', 'mlp', '--data', 'digits', ...baseline], 2, /does not support --microbatch/)
    const {
      code: status,
      stdout,
      stderr
    } = await admbProcess([
      'plan',
      'mlp',
      '--data',
      'digits',
      '--device-memory',
      '4MB',
      '--devices',
      '1,0.5@125MB',
      '--schedule',
      'auto,gradients=sign',
      '--json'
    ])
    assert.equal(status, 0, stderr)
    const { plan, plans, group } = JSON.parse(stdout)
    assert.ok(plan.deviceBytes > 0 && plan.deviceBytes <= 4 * 2 ** 20)
    const [own, other] = plan.devices
    assert.ok(own.rows > other.rows && own.receivedBytes === 0 && other.receivedBytes > 0, stdout)
    assert.ok(other.returnedBytes > 0 && other.returnedBytes < other.receivedBytes / 16, stdout)
    assert.ok(group.expected > 0 && group.expected <= group.closedForm + 1e-9, stdout)
    type Alternative = { readonly schedule: string; readonly plan: { readonly stepMs: number } }
    // `auto` never chooses l2l, which does not update layers in parallel with execution, and no pipeline.
    const times = plans.map(({ schedule, plan }: Alternative) =>
      ['baseline', 'baseline-ag', 'l2l-p'].includes(schedule) ? plan.stepMs : Number.POSITIVE_INFINITY
    )
    assert.equal(plan.stepMs, Math.min(...times))
    await fails(['plan', 'mlp', '--data', 'digits', '--devices', '1,0@1MB'], 2, /must be a number above 0/)
    const code = ['--schedule', 'l2l,gradients=rank:4']
    await fails(
      ['plan', 'mlp', '--data', 'digits', ...code],
      2,
      /is for lines of device workers: give the speed of one/
    )
    await fails(
      ['train', '--model', 'mlp', '--data', 'digits', ...code],
      2,
      /give a peer token=FILE as well, or omit it/
    )
  })

  it('plans a pipeline with its chart, and trains it as one device does', async () => {
    const mlp = ['mlp', '--data', 'digits', '--backend', 'wasm']
    const chart = join(dir, 'chart.svg')
    const planned = await admb(['plan', ...mlp, '--schedule', '1f1b,workers=2', '--out', chart, '--json'])
    const { plan, plans } = JSON.parse(planned.stdout)
    assert.deepEqual(
      plans.map(({ schedule }: { readonly schedule: string }) => schedule),
      ['1f1b']
    )
    assert.equal(plan.pipeline.cut.length, 2)
    const svg = await readFile(chart, 'utf8')
    assert.match(svg, /<svg [\s\S]*1f1b on 2 devices[\s\S]*forward[\s\S]*backward/)
    const { stdout } = await admb(['plan', ...mlp, '--schedule', 'l2l', '--out', chart])
    assert.match(stdout, /^its time .*(forward|backward) \d+\.\d %, /m)
    assert.match(await readFile(chart, 'utf8'), /<svg [\s\S]*Expected time of a step, l2l[\s\S]*backward \d+\.\d %/)
    const png = ['--schedule', '1f1b,workers=2', '--out', join(dir, 'chart.png')]
    await refuses(['plan', ...mlp, ...png], 2, /chart.png does not end in .svg: rename it/)
    await refuses(['plan', ...mlp, '--schedule', 'gpipe'], 2, /divides the layers among devices: add workers=2/)
    const train = ['train', '--model', ...mlp, '--limit', '200', '--batch', '20', '--json', '--schedule']
    const alone = JSON.parse((await admb([...train, 'baseline-ag,microbatch=4'])).stdout)
    const shared = JSON.parse((await admb([...train, 'zb-h1,microbatch=4,workers=2'])).stdout)
    assert.equal(shared.averageLoss, alone.averageLoss)
    assert.equal(shared.plan.pipeline.microbatches, 5)
    assert.ok(shared.relay.bubble > 0 && shared.relay.bubble < 1)
  })

  it('trains with 8-bit rule state, no average and two devices, and scores the stored model', async () => {
    const task = ['train', '--data', 'digits', '--model', 'mlp', '--limit', '400', '--batch', '16', '--microbatch', '4']
    const large = ['--rule', 'adam,bits=8', '--average', 'none', '--workers', '2']
    const model = join(dir, 'large')
    const trained = await admb([...task, ...large, '--predict-with', 'current', '--dir', model, '--json'])
    assert.equal(trained.code, 0, trained.stderr)
    const { relay, predictor, accuracy } = JSON.parse(trained.stdout)
    assert.deepEqual([relay.workers, relay.lostSteps, relay.dropped], [2, 0, 0])
    const scored = await admb(['eval', '--dir', model, '--data', 'digits', '--limit', '400', '--json'])
    assert.equal(scored.code, 0, scored.stderr)
    const after = JSON.parse(scored.stdout)
    assert.deepEqual(after.predictor, predictor)
    assert.ok(after.accuracy > accuracy)
    await refuses([...task, '--rule', 'adam,bits=4'], 2, /rule adam: bits must be 8 or 32, not 4/)
    await refuses([...task, '--rule', 'adam,bits=8,radius=1'], 2, /bits=8 and a radius do not go together/)
    await refuses([...task, '--stash', 'disk'], 2, /device, host/)
    await refuses([...task, '--workers', '0'], 2, /from 1 to 64/)
  })

  it('has a help text of one screen, with examples', async () => {
    for (const name of commandNames) {
      const { code, stdout, stderr } = await admb([name, '--help'])
      assert.equal(code, 0, stderr)
      assert.match(stdout, /Examples:\n {2}\S/, name)
      const lines = stdout.split('\n')
      assert.ok(lines.length <= 80, `${name} --help has ${lines.length} lines`)
      for (const line of lines) assert.ok(line.length <= 80, `${name}: ${line}`)
    }
    const { code, stdout } = await admb(['--help'])
    assert.equal(code, 0)
    assert.match(stdout, /demo .*\n.*peer /)
  })

  it('suggests the nearest option, also one that only --help-all shows', async () => {
    for (const [given, nearest] of [
      ['--dat', '--data'],
      ['--trus', '--trust'],
      ['--keep-jurnal', '--keep-journal']
    ])
      await refuses(['peer', given, 'x'], 2, new RegExp(`unknown option '${given}' \\(Did you mean .*${nearest}\\b`))
  })

  it('suggests what other programs call otherwise', async () => {
    for (const [words, line] of [
      ['peer --port 80', /use --http HOST:PORT/],
      ['peer --join x', /use --peer/],
      ['peer --max-rate 5', /use --trust bounded/],
      ['train --lr 0.1', /use --rule NAME,step=NUMBER/],
      ['train --learning_rate=0.1', /use --rule NAME,step=NUMBER/],
      ['train --epochs 3', /use --passes/],
      ['train --shuffle', /use --shuffle-window/],
      ['train --batch-size 3', /use --batch/],
      ['predict --file x', /use --data/],
      ['sim run --seed 3', /--set seed=VALUE/],
      ['sim run --crash-share 3', /unknown option/],
      ['serve', /use admb peer/],
      ['simulate', /use admb sim/],
      ['fit', /use admb train/]
    ] as const) {
      await refuses(words.split(' '), 2, line)
    }
    await refuses(['sim', 'run', 'binary-tree', '--set', 'nods=3'], 2, /unknown key 'nods'; did you mean nodes\?/)
    await refuses(['sim', 'run', 'binary-trees'], 2, /unknown scenario 'binary-trees'; did you mean binary-tree\?/)
    const { stdout } = await admb(['train', '--model', 'help'])
    assert.doesNotMatch(stdout, /undefined/)
  })

  it('names the columns, and the likely one, if there is no label', async () => {
    const data = await file('columns.csv', 'age,Bought\n1,a\n2,b\n')
    await refuses(
      ['train', '--data', data],
      1,
      /\(age, Bought\) has no label column "label": give its name as label \(--label COLUMN\)/
    )
    await refuses(
      ['train', '--data', data, '--label', 'bought'],
      1,
      /no label column "bought" \(did you mean "Bought"\?\)/
    )
    const texts = await file('texts.csv', 'text,Mood\na good day,up\na bad day,down\n')
    const text = ['train', '--data', texts, '--model', 'transformer', '--label', 'mood']
    await refuses(text, 1, /\(text, Mood\) has no label column "mood" \(did you mean "Mood"\?\)/)
  })

  it('takes the port of HTTP before a peer starts', async () => {
    const holder = createServer()
    await new Promise<void>(resolve => holder.listen(0, '127.0.0.1', resolve))
    const { port } = holder.address() as { readonly port: number }
    const state = join(dir, 'no-port')
    try {
      await refuses(['peer', '--dimension', '2', '--dir', state, '--http', String(port)], 1, /the port is in use/)
    } finally {
      holder.close()
    }
    assert.equal(existsSync(state), false)
  })

  it('shows all options with --help-all', async () => {
    const { stdout: short } = await admb(['peer', '--help'])
    const { code, stdout: long } = await admb(['peer', '--help-all'])
    assert.equal(code, 0)
    const namesIn = (help: string) => [...help.matchAll(/^ {2}(?:-h, )?(--[\w-]+)/gm)].map(([, name]) => name)
    const rarer = namesIn(long).filter(name => !namesIn(short).includes(name))
    assert.ok(rarer.includes('--trust') && rarer.length > 20, `${rarer}`)
    assert.match(short, new RegExp(`${rarer.length} further options: admb peer --help-all`))
  })

  it('lists options of rules that the rules have', async () => {
    const { stdout, code } = await admb(['train', '--rule', 'help'])
    assert.equal(code, 0)
    const listed = stdout.split('\n\n').flatMap(entry => {
      const [name] = entry.split(' ')
      return [...entry.matchAll(/^ {4}(\w+) +.*\(default: (.*)\)$/gm)].map(([, key, initial]) => ({
        name,
        key,
        initial
      }))
    })
    assert.ok(listed.length > 40, `${listed.length} options`)
    for (const { name, key, initial } of listed) {
      const value = initial === 'off' ? 0.5 : Number.isNaN(Number(initial)) ? initial : Number(initial)
      try {
        createRule({ name, [key]: value } as RuleSpec)
      } catch (error) {
        // A value out of the range of an option that is off by default is an error as well.
        assert.ok(initial === 'off', `${name},${key}=${value}: ${error}`)
        assert.doesNotMatch(String(error), /unknown option/)
      }
    }
  })

  it('lists models with the ranges and defaults of their options', async () => {
    const { stdout, code } = await admb(['train', '--model', 'help'])
    assert.equal(code, 0)
    assert.match(stdout, /logistic +two classes/)
    assert.match(
      stdout,
      /hidden +units of the hidden layers \(a list of whole numbers, each at least 1; default: \[128\]\)/
    )
    assert.match(stdout, /dropout +dropout rate \(from 0 to below 1; default: 0\)/)
    assert.match(stdout, /norm +position of the layer norms.* \(before or after; default: before\)/)
  })

  it('completes commands, options and files in shells', async () => {
    const offered = async (...words: string[]) =>
      (await admb(['complete', '--', ...words])).stdout.trimEnd().split('\n')
    const names = (lines: string[]) => lines.slice(0, -1).map(line => line.split('\t')[0])
    assert.deepEqual(names(await offered('tr')), ['train'])
    assert.deepEqual(names(await offered('sim', 'com')), ['compare'])
    assert.deepEqual(names(await offered('train', '--micro')), ['--microbatch'])
    assert.deepEqual(names(await offered('train', '--scale', '')), ['none', 'standard'])
    assert.deepEqual(await offered('train', '--data', ''), [':0'])
    assert.deepEqual(names(await offered('train', '--rule', 'ada')), ['adagrad', 'adam', 'adamw'])
    assert.deepEqual(names(await offered('train', '--average', 'un')), ['uniform'])
    assert.deepEqual(names(await offered('train', '--model', 'l')), ['logistic', 'linear', 'llama'])
    assert.deepEqual(names(await offered('peer', '--format', 'li')), ['libsvm'])
    assert.deepEqual(names(await offered('sim', 'run', 'part')), ['partitions'])
    assert.deepEqual(names(await offered('sim', 'compare', '--algorithms', 'ser')), ['serial'])
    const script = await admb(['complete', 'bash'])
    assert.equal(script.code, 0)
    assert.match(script.stdout, /complete .*admb/)
    await refuses(['complete', 'fsh'], 2, /fsh.*bash.*--help.*ERR_USAGE/)
  })
})
