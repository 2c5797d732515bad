// The text for a page without streams.

import { make } from "./elements.js";
import { place } from "./shell.js";

const FILE = `from headgate.airflow import build_dags

globals().update(build_dags("pipelines"))`;

export function empty() {
  return [
    make("h2", {}, "No stream yet"),
    make(
      "p",
      {},
      "There is no DAG that keeps a stream running, or none that you may see. One file in the DAGs folder makes ",
      "three of them for every declaration in ",
      make("code", {}, "pipelines"),
      ":",
    ),
    make("pre", {}, FILE),
    make("p", { class: "soft" }, "A declaration of your own begins with ", make("code", {}, "headgate init shop"), "."),
  ];
}

export function noStream() {
  return [make("p", {}, "This DAG keeps no stream running. ", place(make("a", {}, "All streams"), "plugin/streams"))];
}
