// The data of a page, as crates/report/src/html.rs writes it.

export type Text = { en: string; zh: string };

import type { Column } from 'goodput/columns';

export type Metric = {
  key: string;
  symbol: string;
  name: Text;
  text: Text;
  unit: string;
  level: Text;
  better: Text;
  branch: string;
  formula: string;
  population: string;
  undefined_when: string;
  pitfalls: Text;
  source: string;
  peers: string;
  definition: number;
  absent: Text | null;
};

export type Block =
  | { kind: 'pair'; label: string; value: string; about: string | null; mark: string | null }
  | { kind: 'sentence'; text: string }
  | { kind: 'command'; text: string }
  | {
      kind: 'table';
      columns: string[];
      rows: Array<{ about: string | null; cells: string[] }>;
      left: number[];
    };

export type Section = { id: string; title: string; blocks: Block[] };

export type Document = {
  title: string;
  verdict: string;
  headline: string;
  conditions: string;
  lines: string[];
  sections: Section[];
};

export type Shape = {
  key: string;
  n: number;
  edges: Column;
  counts: Column;
  shares: Column;
  values: Column;
};

export type Percentiles = { key: string; p50: Column; p90: Column; p99: Column };

export type Cloud = { x: Column; y: Column; of: number };

export type Lane = {
  index: number;
  outcome: string;
  intended_ms: number;
  sent_ms: number | null;
  end_ms: number | null;
  tokens_ms: Column;
  tokens_of: number;
  slowest: boolean;
};

export type Picture = {
  step_s: number;
  from_s: number;
  offered: Column;
  sent: Column;
  completed: Column;
  failed: Column;
  in_flight: Column;
  output_tokens: Column;
  shapes: Shape[];
  over_time: { step_s: number; from_s: number; in_flight: Column; of: Percentiles[] };
  ttft_by_input: Cloud;
  lateness: Cloud;
  cap_wait: Cloud;
  client_lag_us: number[] | null;
  lanes: Lane[];
  requests: { ttft_ms: Column; e2el_ms: Column; tokens: Column; of: number };
};

export type Run = {
  id: string;
  name: string;
  simulated: boolean;
  notes: string[];
  documents: { en: Document; zh: Document };
  slo: Array<{ key: string; limit_ms: number; label: string | null }>;
  slo_beyond: string[];
  window_s: number | null;
  picture: Picture;
};

export type Leaf = { symbol: string; keys: string[]; name: Text; text: Text | null };

export type Page = {
  format: number;
  lang: 'en' | 'zh';
  kind: 'report' | 'web';
  version: string;
  words: Record<string, Text>;
  metrics: Metric[];
  tree: Array<{ id: string; name: Text; leaves: Leaf[] }>;
  reading_tok_s: number;
  runs: Run[];
  /** What is easily misread in the runs together; none in a page that fetches them. */
  lints?: { en: string[]; zh: string[] };
};
