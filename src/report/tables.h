// Writes the tables of a report as HTML. Free functions; one thread.
#pragma once

#include <string>

#include "report/observations.h"

namespace lockstep::report {

/// Returns a card with the table: mean, standard deviation and number of runs of each row, with the reported figures.
std::string table_html(const Material& material, const lab::TableSpec& spec, const std::string& id);

}  // namespace lockstep::report
