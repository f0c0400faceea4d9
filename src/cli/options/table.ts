/** All options of the command line, those of `sim` apart (`../sim/options.ts`): each is one row. */

import { formatNames } from '../../data/index.js'
import { DEVICE_NAMES } from '../../device/types.js'
import { SCHEDULES, STASH_LOCATIONS, STORES } from '../../l2l/executor/types.js'
import {
  averages,
  averagingNames,
  defaultAveraging,
  defaultRule,
  driftTests,
  ruleNames,
  rules
} from '../../learning/index.js'
import { LAYOUTS } from '../../nn/weights/layouts.js'
import { ROLES } from '../../server/roles.js'
import { type FlagsOf, flag, text, value } from './option.js'
import * as to from './values.js'

export const DEFAULT_HTTP_PORT = 7280
export const DEFAULT_PORT = 4280

const PEERS = ['peer', 'demo'] as const
/** Commands that make a model in one process. */
const FITTING = ['train', 'plan', 'schema', 'tune', 'regret'] as const
const ALONE = [...FITTING, 'eval', 'predict', 'explain'] as const
const READING = [...PEERS, ...ALONE] as const
/** Commands that read text of any kind. */
const TEXTUAL = [...ALONE, 'split'] as const
const FEATURES = [...PEERS, ...FITTING] as const
const SERIAL = ['train', 'tune', 'regret'] as const
const LEARNING = [...PEERS, ...SERIAL] as const
const EXECUTING = [...PEERS, 'train', 'plan', 'eval', 'predict'] as const
const DEVICES = [...EXECUTING, 'worker'] as const
const EXECUTING_ALONE = ['train', 'plan', 'eval', 'predict'] as const
const TEXTS = [...PEERS, 'train', 'plan', 'eval', 'predict'] as const
const TUNING = ['peer', 'train', 'plan'] as const
const STORED = ['eval', 'predict', 'generate', 'export', 'explain'] as const
const EVERY = [
  ...READING,
  ...STORED,
  ...[
    'tokenizer train',
    'split',
    'status',
    'audit',
    'keygen network',
    'keygen token',
    'keygen identity',
    'invite',
    'doctor',
    'worker'
  ],
  ...['sim run', 'sim compare', 'sim sweep', 'sim experiment', 'sim fuzz', 'sim replay', 'sim list']
] as const

// What rows of a kind share, and what differs: `…Alone` is not for peers, `…Rare` only in `--help-all`.
const inputs = { group: 'Inputs', in: 'read', for: READING } as const
const inputsRare = { ...inputs, rare: true } as const
const inputsAlone = { ...inputsRare, for: ALONE } as const
const inputsText = { ...inputsRare, for: TEXTUAL } as const
const inputsPeer = { ...inputs, for: ['peer', 'split'] } as const
const column = { group: 'Columns', in: 'read', for: READING } as const
const columnRare = { ...column, rare: true } as const
const columnAlone = { ...columnRare, for: ALONE } as const
/** Peers take what columns mean from a schema, which all of them share. */
const table = { group: 'Columns', in: 'table', for: FITTING, rare: true } as const
const features = { group: 'Features', in: 'task', for: FEATURES } as const
const featuresAlone = { ...features, for: FITTING, rare: true } as const
const learning = { group: 'Learning', in: 'task', for: LEARNING } as const
const serial = { ...learning, for: SERIAL } as const
const peerLearning = { group: 'Learning', in: 'peer', for: ['peer'] } as const
const train = { group: 'Learning', for: ['train'] } as const
const tuning = { group: 'Networks', in: 'task', for: TUNING, rare: true } as const
const texts = { group: 'Networks', in: 'task', for: TEXTS, rare: true } as const
const execution = { group: 'Execution', in: 'execution', for: EXECUTING } as const
const executionAlone = { ...execution, for: EXECUTING_ALONE, rare: true } as const
const worker = { group: 'Peers', for: ['worker'] } as const
const tune = { group: 'Search', for: ['tune'] } as const
const generate = { group: 'Text', for: ['generate'] } as const
const tokenizer = { group: 'Text', for: ['tokenizer train'] } as const
const exchange = { group: 'Exchange', in: 'peer', for: ['peer'] } as const
const agreed = { group: 'Exchange', in: 'task', for: ['peer'], rare: true } as const
const peers = { group: 'Peers', for: ['peer'] } as const
const peersRare = { ...peers, in: 'peer', rare: true } as const
const doctor = { group: 'Peers', for: ['doctor'] } as const
const access = { group: 'Access', for: ['peer'] } as const
const accessRare = { ...access, in: 'peer', rare: true } as const
const invite = { group: 'Access', for: ['invite'] } as const
const identity = { group: 'Access', for: ['keygen identity'], required: true } as const
const secret = { group: 'Access', for: ['keygen network', 'keygen token'], required: true } as const
const state = { group: 'State', in: 'peer', for: ['peer'] } as const
const stateRare = { ...state, rare: true } as const
const exporting = { group: 'State', for: ['export'] } as const
const audit = { group: 'State', for: ['audit'] } as const
const http = { group: 'HTTP', for: ['peer'] } as const
const status = { group: 'HTTP', for: ['status'] } as const
const split = { group: 'HTTP', for: ['split'] } as const
const output = { group: 'Output', for: EVERY } as const

const KINDS = ['wordpiece', 'bpe'] as const
const TEXT_TABLES = ['csv', 'parquet', 'jsonl'] as const
const EXPORTS = ['safetensors', 'onnx', 'json'] as const
const EXPORTS_HELP =
  'safetensors: a folder with tensors, of any model; onnx: a file for ONNX runtimes; json: weights of a linear model'
const LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
const BACKENDS = ['auto', ...DEVICE_NAMES] as const
const SERVING = ['average', 'current'] as const
const ROLE_NAMES = Object.keys(ROLES) as (keyof typeof ROLES)[]
const SCHEDULE_HELP = `${SCHEDULES.join(', ')}, or auto for the fastest (default: l2l)`
const HTTP_HELP = `HTTP and page, or off (default: port ${DEFAULT_HTTP_PORT})`
const RULES = `${ruleNames.join(', ')}, or help (default: ${defaultRule.name})`
const AVERAGES = `${averagingNames.join(', ')}, or help (default: ${defaultAveraging.name})`
const DELIMITERS = 'CSV: comma, semicolon, tab or pipe (default: inferred)'
const LAYERED = 'A rule for each layer of a network: LAYERS:NAME,key=value,…;*:NAME,…\n'
const rule = to.layered(to.named('rule', rules, LAYERED))
const average = to.named('average', averages)

export const rows = [
  value('data', '<file>', to.once, 'a file, folder, pattern or URL, - (stdin), digits, digits:test or synthetic', {
    ...inputs,
    for: [...READING, 'split']
  }),
  value('format', '<name[,…]>', to.format, `${formatNames.join(', ')} (default: from the name)`, {
    ...inputs,
    for: [...READING, 'split'],
    spreads: true
  }),
  value('delimiter', '<char>', to.delimiter, DELIMITERS, inputsText),
  value('encoding', '<name>', text, 'encoding of text (default: UTF-8, or UTF-16 by its byte order mark)', inputsText),
  value('decimal', '<mark>', to.decimal, 'CSV: . or , (default: by column)', inputsAlone),
  flag('header', 'CSV: the first line holds the names of the columns (default)', inputsText),
  flag('no-header', 'CSV: the first line is a row', inputsText),
  value('na', '<list>', to.list, 'texts of missing values (default: NA, null, -, … in any case)', inputsAlone),
  value('shard', '<I/N>', to.shard, 'only every N-th input, starting with the I-th', inputs),
  value('passes', '<n>', to.whole(1), 'number of passes over the data', inputs),
  flag('cache', 'keep parsed rows in the cache folder of the user for later runs', { ...inputsAlone, for: ['train'] }),
  value('shuffle-window', '<rows>', to.whole(1, 1_000_000), 'shuffle within a window of rows', inputsRare),
  value('seed', '<n>', to.whole(0), 'seed of shuffling and of built-in streams', inputsAlone),
  value('limit', '<rows>', to.whole(0), 'maximum number of inputs', { ...inputsRare, as: 'maxRows' }),
  value('noise', '<x>', to.amount(), 'synthetic: share of flipped classes, or deviation of numbers', inputsAlone),
  value('skip-limit', '<share>', to.share, 'fail if more inputs are skipped (default: 0.01)', {
    ...inputsText,
    in: undefined
  }),
  flag('strict', 'stop at the first malformed input instead of skipping it', inputsAlone),
  value('from', '<where>', to.startAt, 'start, now, stored, or an offset in bytes (default: stored)', {
    ...inputsPeer,
    for: ['peer'],
    rare: true
  }),
  flag('follow', 'read on as a file grows, also when it is rotated', inputsPeer),

  value('label', '<column>', text, 'CSV column or JSON key of the label', column),
  value('labels', '<file>', text, 'IDX: the file of labels (default: beside the images)', columnAlone),
  value('class-names', '<list>', to.list, 'label texts in the order of their class numbers', {
    ...columnRare,
    in: 'task'
  }),
  value('ignore', '<list>', to.list, 'CSV columns or JSON keys to ignore', columnRare),
  value('categorical', '<list>', to.list, 'numeric CSV columns to treat as categories', columnAlone),
  value('columns', '<list>', to.list, 'CSV: the numeric columns; without a header, the names of all', {
    ...columnRare,
    in: 'table'
  }),
  value('columns', '<list>', to.list, 'CSV without a header: the names of its columns', {
    ...inputsText,
    for: ['split']
  }),
  value('schema', '<file>', text, 'what columns mean: a file (admb schema), or a URL', {
    ...features,
    group: 'Columns'
  }),
  value('weight', '<column>', text, 'CSV column of the weights of inputs', table),
  value('id', '<column>', text, 'CSV column that identifies inputs', table),
  value('interactions', '<list>', to.pairs, 'pairs of columns or VW namespaces to multiply, A:B,C:D, or all', {
    ...table,
    for: FEATURES
  }),
  value('text', '<how>', to.choice(['words', 'bigrams'] as const), 'features of texts (default: words)', table),

  value('dimension', '<n[,constant=no]>', to.dimension, 'number of features (default: inferred)', {
    ...features,
    rare: true,
    spreads: true
  }),
  value('hash-bits', '<n>', to.whole(1, 30), 'hash features (CSV: categories) into 2^n', features),
  value('scale', '<how>', to.choice(['none', 'standard'] as const), 'numeric columns (default: standard)', features),
  flag('no-constant', 'omit the feature that is always 1', featuresAlone),
  value('classes', '<n[..max]>', to.classes, 'number of classes, with room for later ones (default: inferred)', {
    ...features,
    rare: true,
    spreads: true
  }),
  value('class-weights', '<how>', to.classWeights, 'balanced, CLASS=WEIGHT,…, or a YAML file', featuresAlone),

  value('model', '<name>', to.model, 'name, or help, or FILE.yaml (default: by classes)', learning),
  value('rule', '<name[,…]>', rule, RULES, learning),
  value('rule', '<name[,…]>', rule, 'update rule, or help (default: adam)', { ...learning, for: ['plan'] }),
  value('average', '<name[,…]>', average, AVERAGES, {
    ...learning,
    for: [...LEARNING, 'plan'],
    rare: true,
    as: 'averaging'
  }),
  value('batch', '<b>', to.batchSize, 'gradients per update, or auto (default: 128)', { ...learning, for: PEERS }),
  value('batch', '<b>', to.whole(1), 'gradients per update (default: 1)', serial),
  value('batch', '<b>', to.whole(1), 'inputs per update (default: 32)', { ...learning, for: ['plan'] }),
  value('l2', '<lambda>', to.amount(), 'penalty λ/2·‖w‖²', { ...learning, rare: true }),
  value('target-scale', '<mean:sd>', to.targetScale, 'regression: scale of the target, or none (default: inferred)', {
    ...serial,
    rare: true
  }),
  value('target', '<kind>', to.choice(['class', 'number'] as const), 'networks: what is predicted', {
    ...learning,
    for: ['train', 'plan'],
    rare: true
  }),
  value('predict-with', '<which>', to.choice([...SERVING, 'ahead'] as const), '(default: average)', peerLearning),
  value('predict-with', '<which>', to.choice(SERVING), '(default: average)', {
    group: 'Learning',
    for: ['train', 'regret', ...STORED]
  }),
  value('label-delay', '<time>', to.duration, 'labels of POST /predict may come later, up to this time, such as 2h', {
    ...peerLearning,
    rare: true
  }),
  value('drift', '<test>', to.choice([...driftTests, 'off'] as const), 'detect rises of the loss (default: off)', {
    ...train,
    rare: true
  }),
  value('holdout', '<share>', to.heldOut, 'score this share of the rows after each pass instead of learning it', train),
  value('validation', '<file>', to.once, 'the same with the rows of this file', train),
  value('patience', '<passes>', to.whole(1), 'end after passes without improvement (default: 3)', train),
  value('rate', '<n>', to.amount(true), 'maximum inputs per second of each peer; a slow machine has fewer', {
    group: 'Learning',
    for: ['demo'],
    default: 250
  }),

  value('weights', '<path>', text, 'network to start from: a folder or safetensors file', {
    group: 'Networks',
    in: ['task', 'execution'],
    as: 'checkpoint',
    for: [...TUNING, 'eval', 'predict', 'generate', 'export']
  }),
  value('lora', '<key=value,…>', to.lora, 'train adapters: rank, alpha, layers', tuning),
  value(
    'freeze',
    '<layers>',
    to.list,
    'keep these as in --weights: embeddings, layers:0-5, or names of layers',
    tuning
  ),
  value('length', '<tokens>', to.whole(1), 'text: tokens per row (default: 64)', texts),
  value('tokenizer', '<file>', text, 'a tokenizer.json, or wordpiece:SIZE or bpe:SIZE (default: characters)', texts),

  value('backend', '<name>', to.choice(BACKENDS), '(default: auto)', { ...execution, for: [...DEVICES, 'generate'] }),
  value('schedule', '<name[,…]>', to.schedule, SCHEDULE_HELP, {
    ...execution,
    for: ['demo', 'plan', 'eval', 'predict'],
    spreads: true
  }),
  value(
    'schedule',
    '<name[,…]>',
    to.partitionedSchedule,
    `${SCHEDULES.join(', ')}, auto (default: l2l); zero=LEVEL,hosts=N,token=FILE divides it among N hosts`,
    {
      ...execution,
      for: ['train'],
      spreads: true
    }
  ),
  value(
    'schedule',
    '<name[,…]>',
    to.peerSchedule,
    `${SCHEDULES.join(', ')}, auto (default: l2l); token=FILE admits admb worker`,
    {
      ...execution,
      for: ['peer'],
      spreads: true
    }
  ),
  value('device-memory', '<bytes>', to.bytes, 'device memory limit, such as 256MB', { ...execution, for: DEVICES }),
  value('token', '<file>', text, 'the file that its --schedule names as token', { ...worker, required: true }),
  value('peer', '<multiaddr>', text, 'the peer whose network this machine helps to compute', {
    ...worker,
    required: true
  }),
  value('network-key', '<file>', text, "the peer's network key, if it has one", worker),
  value('microbatch', '<n>', to.whole(1), 'rows on the device at a time (default: the whole batch)', executionAlone),
  value('stash', '<place>', to.choice(STASH_LOCATIONS), 'of layer outputs (default: device)', executionAlone),
  value('workers', '<n>', to.whole(1, 64), 'devices that share each batch, a thread each (default: 1)', executionAlone),
  value('devices', '<group>', to.devices, 'N equal devices, or speeds and lines: 1,0.5@125MB (a second)', {
    group: 'Execution',
    for: ['plan']
  }),
  value('out', '<file>', text, 'write where the time goes, a pie or the chart of a pipeline, as SVG', {
    group: 'Execution',
    for: ['plan']
  }),
  value('store', '<where>', to.choice(STORES), 'where a network and its optimizer state are (default: memory)', {
    group: 'Execution',
    for: ['train'],
    rare: true
  }),
  value('host-memory', '<bytes>', to.bytes, '--store disk: memory for what is on the disk (default: 1GiB)', {
    group: 'Execution',
    for: ['train']
  }),

  value('budget', '<n>', to.whole(1000), 'inputs that all candidates learn together (default: 5000000)', tune),
  value('candidates', '<n>', to.whole(1), 'a random sample of the candidates, by --seed (default: all)', tune),
  value('threads', '<n>', to.whole(1, 1024), 'number of parallel runs (default: number of cores)', {
    group: 'Search',
    for: ['tune', 'sim sweep', 'sim fuzz']
  }),
  value('top', '<n>', to.whole(1), 'number of candidates to print (default: 10)', tune),
  value('out', '<file>', text, 'write the best options as a file for --config', tune),
  value('top', '<n>', to.whole(1), 'number of weights to print (default: 20)', { group: 'Search', for: ['explain'] }),
  value('max-passes', '<n>', to.whole(1), 'maximum passes over the data to find it (default: 5000)', {
    group: 'Search',
    for: ['regret']
  }),

  value('prompt', '<text>', text, 'text to continue', { ...generate, required: true }),
  value('tokens', '<n>', to.whole(1), 'number of tokens (default: 64)', generate),
  value('temperature', '<t>', to.amount(), 'divides the logits; 0: the most probable token (default: 1)', generate),
  value('top-k', '<n>', to.whole(1), 'draw from the n most probable tokens', generate),
  value('top-p', '<share>', to.share, 'draw from the most probable tokens with this probability', generate),
  value('seed', '<n>', to.whole(0), 'seed of the draws (default: 1)', generate),
  value('data', '<file>', text, 'CSV, Parquet, JSON lines or plain text; - for stdin', {
    ...tokenizer,
    required: true
  }),
  value('format', '<name>', to.choice(TEXT_TABLES), '(default: from the file name)', tokenizer),
  value('columns', '<list>', to.list, 'the text columns (default: those that look like text)', tokenizer),
  value('label', '<column>', text, 'the label column, which is not text', tokenizer),
  value('delimiter', '<char>', to.delimiter, DELIMITERS, tokenizer),
  value('kind', '<kind>', to.choice(KINDS), '', { ...tokenizer, default: 'bpe' }),
  value('size', '<n>', to.whole(257, 1_000_000), 'maximum number of tokens', { ...tokenizer, default: 8000 }),
  value('out', '<file>', text, 'output file', { ...tokenizer, default: 'tokenizer.json' }),

  value('rate', '<n>', to.amount(true), 'inputs a second (default: unlimited)', exchange),
  value('period', '<ms[,carry=n]>', to.period, 'T: time between sums, or auto (default: 100)', {
    ...exchange,
    spreads: true
  }),
  value('degree', '<d>', to.whole(2, 255), 'maximum number of tree neighbours (default: 4)', exchange),
  value('sums', '<kind>', to.choice(['exact', 'lattice'] as const), 'float32, or integers (default: lattice)', agreed),
  value(
    'algorithm',
    '<name>',
    to.choice(['admb', 'mawo', 'dmb'] as const),
    'who makes updates (default: admb)',
    agreed
  ),
  value(
    'local-steps',
    '<h[,…]>',
    to.localSteps,
    'H[,momentum=μ][,bytes=B]: own steps for each batch, bytes a weight of sums',
    {
      ...agreed,
      spreads: true
    }
  ),
  value('learner', '<where>', to.learner, 'external[,socket=PATH]: a program computes the gradients', {
    group: 'Exchange',
    for: ['peer'],
    rare: true
  }),
  value('dp', '<values>', to.privacy, 'epsilon=…,delta=…,clip=…[,releases=N] (default: none)', {
    ...exchange,
    rare: true
  }),
  value('trust', '<level>', to.trust, 'or bounded[,rate=N][,signers=N] (default: members)', {
    ...agreed,
    in: ['task', 'peer']
  }),

  value('listen', '<multiaddr>', to.collect, `listen address (default: port ${DEFAULT_PORT}); repeatable`, peers),
  value('peer', '<multiaddr>', to.collect, 'a peer to join, or mdns (local network); repeatable', peers),
  flag('relay', 'relay between peers that cannot reach each other', peersRare),
  value('name', '<name>', to.peerName, 'name on the page (default: part of its id)', peersRare),
  flag('fix', 'install TensorFlow, so that networks train faster (1.3 GB, minutes)', doctor),
  value('peer', '<multiaddr>', text, 'find the step at which a connection to that peer fails', doctor),
  value('network-key', '<file>', text, "the peer's network key, if it has one", doctor),
  value('dir', '<dir>', text, 'connect as the (stopped) peer of that directory, and compare its model', doctor),

  value('network-key', '<file>', text, 'only peers with this key (admb keygen network)', access),
  value('network-id', '<id>', text, 'only peers of this network (default: that of the key, or of --dir)', accessRare),
  value('allow', '<file[,invited]>', to.allow, 'only peers with an id in this file, and those they invite', access),
  value('invitation', '<text>', text, 'join with this invitation, or the one in this file (admb invite)', {
    ...access,
    rare: true
  }),
  value('out', '<file>', text, 'output file; never overwritten', secret),
  value('id', '<id>', text, 'the network id, to replace the key of a network (default: a random one)', {
    group: 'Access',
    for: ['keygen network']
  }),
  value('role', '<role>', to.choice(ROLE_NAMES), to.rolesHelp(), {
    group: 'Access',
    for: ['keygen token'],
    default: 'admin'
  }),
  value('dir', '<dir>', text, 'the state directory to create', identity),
  value('dir', '<dir>', text, 'directory of an identity on the allow-lists that no running peer uses', {
    ...invite,
    required: true
  }),
  value('expires', '<time>', to.duration, 'time until it ends for all peers that use it (default: 7d)', invite),
  value('url', '<url>', text, 'print a link to the join page of the peer with this HTTP address', invite),
  value('out', '<file>', text, 'write the invitation to this file; never overwritten', invite),
  value('network-key', '<file>', text, 'the key of the network, if it has one; it becomes part of the link', invite),
  value('network-id', '<id>', text, 'the id of the network (default: that of the key, or of --dir)', invite),

  value('dir', '<dir>', text, 'directory of identity and state', state),
  flag('keep-journal', 'keep the whole journal and lineage in --dir, for admb audit', stateRare),
  value('log', '<file>', text, 'append losses to this file, for admb regret', {
    group: 'State',
    for: ['peer', 'train'],
    rare: true
  }),
  value('log', '<file>', to.collect, 'a log of train or peer, one for each peer (default: train on the data)', {
    group: 'State',
    for: ['regret']
  }),
  value('dir', '<dir>', text, 'directory of the predictor: to store it in, and to continue from', {
    group: 'State',
    for: ['train']
  }),
  value('dir', '<dir>', text, 'directory of the stored predictor', { group: 'State', for: STORED }),
  value('state', '<file>', text, 'what was dealt, so that the next run continues after it', {
    group: 'State',
    for: ['split']
  }),
  value('dir', '<dir>', to.collect, 'state directory of a stopped peer; repeatable', audit),
  flag('complete', 'also fail if an input is lost', audit),
  value('out', '<path>', text, 'new folder, or file of the weights', { ...exporting, required: true }),
  value('format', '<name>', to.choice(EXPORTS), EXPORTS_HELP, { ...exporting, default: 'safetensors' }),
  value('data', '<file>', text, 'rows that name the hashed features of a linear model', exporting),
  value('layout', '<name>', to.choice(LAYOUTS), "names of the tensors (default: the model's, or admb)", exporting),

  value('http', '<[host:]port>', text, HTTP_HELP, { group: 'HTTP', for: ['demo'] }),
  value('http', '<[host:]port[,…]>', to.http, `${HTTP_HELP}; cert=FILE, key=FILE, origin=URL, body=MIB, rate=N`, http),
  flag('stay', 'keep the peers and the page running at the end, until Ctrl-C', { group: 'HTTP', for: ['demo'] }),
  value('http-token-file', '<file>', to.collect, 'require a token (admb keygen token); repeatable', http),
  value('join-page', '[stun]', to.stun, 'browsers may join at /join, with stun:HOST:PORT servers', http),
  value('http', '<address>', text, 'HOST:PORT or URL of the peer', {
    ...status,
    default: `127.0.0.1:${DEFAULT_HTTP_PORT}`
  }),
  value('http-token-file', '<file>', text, 'a token of the peer', status),
  value('to', '<address>', to.collect, 'HOST:PORT or URL of a peer that learns; repeatable', split),
  value('http-token-file', '<file>', to.collect, 'a token of all peers, or repeated, one for each --to', split),
  value('http-ca', '<file>', text, 'certificate (PEM) to trust, such as a self-signed one', {
    ...status,
    for: ['status', 'split']
  }),

  value('log-level', '<level>', to.choice(LEVELS), 'on stderr', {
    ...output,
    for: ['peer'],
    rare: true,
    default: 'info'
  }),
  flag('json', 'print one JSON object as the last line on stdout', output),
  value('config', '<file>', text, 'YAML file of options by long name; flags win', output)
] as const

type OfTable = (typeof rows)[number]
/** Values of the options of a command, or of several. */
export type Flags<Where extends string> = FlagsOf<OfTable, Where>
/** Flags of what a command may read, learn and execute. */
export type AnyFlags = Partial<Flags<(typeof READING)[number] | 'generate'>>
